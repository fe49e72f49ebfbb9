import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { createSigner, generatePrivateKey, OwnerPass, type Signer } from '@skerry/client';
import { createHttpServer, createLogger, type HttpServer, listen } from '@skerry/kit';
import { checkOperation, listUnanswered, overHttp } from '@skerry/kit/testing';
import { until } from '@skerry/kit/testing/until';
import { LIMITS, OPERATION_WINDOW_MS, OWNER_HEADERS, sha256Hex } from '@skerry/protocol';
import { MACHINES_API } from '@skerry/protocol/api/compute/machines';
import { COMPUTE_EXAMPLES } from '@skerry/protocol/api/examples/compute';
import { WebSocket } from 'ws';
import { addLogStream, LOG_STREAM_PATHS } from '../http/log-stream.ts';
import { addMachineRoutes, type MachineRoutes } from '../http/machines.ts';
import { Backups } from '../instances/disks/backups.ts';
import { putAside } from '../instances/disks/released.ts';
import { type InstanceRecord, instanceDirectory } from '../instances/record/record.ts';
import { fillDisk, onDiskOf } from '../testing/directory.ts';
import { OwnerAccess } from './access.ts';
import { Replays } from './replays.ts';

const log = createLogger('test', 'silent');
const ID = 'c'.repeat(64);
const MACHINE = `/control/machine/${ID}`;
const NODE = { domain: '127.0.0.1', nodeId: 'a'.repeat(64) };
/** Of the group of P-256 (SEC 2). */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

const owner = createSigner(generatePrivateKey());
const stranger = createSigner(generatePrivateKey());
/** What reached the instance. Its QEMU is not here: what is asked of it is counted. */
let asked = 0;
let directory: string;
let replays: Replays;
let nowMs: number;
let access: OwnerAccess;
let url: string;
let app: HttpServer;
const NO_DELEGATES = '{"address":"0x00","data":{}}';
let aggregates = NO_DELEGATES;
const core = createServer((_request, response) => response.end(aggregates));

const worker = {
  record: { wanted: { owner: owner.address, diskGib: 1 }, status: { phase: 'running' } },
  console: { read: async () => [], listen: () => () => {} },
  runTask: async () => {
    asked++;
    return [];
  },
  wake() {},
};

const loadReplays = () =>
  Replays.load({ windowMs: OPERATION_WINDOW_MS }, join(directory, 'operations.jsonl'), log, nowMs);

async function open(): Promise<void> {
  replays = await loadReplays();
  access = new OwnerAccess({
    coreUrl: `http://127.0.0.1:${(core.address() as AddressInfo).port}`,
    domain: () => NODE.domain,
    nodeId: NODE.nodeId,
    replays,
    now: () => nowMs,
  });
  const instances = {
    find: (id: string) => (id === ID ? worker : undefined),
    absenceOf: () => undefined,
    expiries: { set: async () => void asked++ },
    reserve: (_address: string, { cpu }: { cpu: number }) =>
      cpu > 8 ? { code: 'NO_CAPACITY', message: 'full' } : nowMs + 60_000,
  };
  app = await createHttpServer({ log, socketPaths: LOG_STREAM_PATHS });
  const now = () => nowMs;
  const sources = {
    ...{ dataDir: directory, instances, access, log, now },
    backups: await Backups.open({ dataDir: directory, signal: new AbortController().signal, now, log }),
  } as unknown as MachineRoutes;
  await app.register(async (scope) => addMachineRoutes(scope as HttpServer, sources));
  addLogStream(app, {
    ...{ instances: instances as never, programs: undefined, access, log },
    clientOf: () => ({ address: '127.0.0.1', key: 'one', isExempt: true, isRelayed: false }),
  });
  url = await listen(app, '127.0.0.1', 0);
}

before(async () => {
  core.listen(0, '127.0.0.1');
  await once(core, 'listening');
});
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'skerry-owner-'));
  nowMs = Date.now();
  asked = 0;
  aggregates = NO_DELEGATES;
  await open();
});
after(() => core.close());
afterEach(async () => {
  await app.close();
  await rm(directory, { recursive: true, force: true });
});

const signed = async (method: string, path: string, body?: string | Uint8Array, by: Signer = owner) =>
  (await OwnerPass.create(by, NODE, nowMs)).headers(
    { method, path, bodySha256: body === undefined ? undefined : sha256Hex(body) },
    nowMs,
  );

async function post(
  path: string,
  headers: Record<string, string>,
  body?: string | Uint8Array,
  type?: string,
) {
  const answer = await fetch(url + path, {
    method: 'POST',
    headers: { ...headers, ...(type === undefined ? {} : { 'content-type': type }) },
    ...(body === undefined ? {} : { body: body as BodyInit }),
  });
  return [answer.status, ((await answer.json()) as { code?: string }).code];
}

/** The same operation in every other spelling that says the same. */
function spellingsOf(headers: Record<string, string>): Record<string, string>[] {
  const operation = JSON.parse(headers[OWNER_HEADERS.operation]!) as { payload: string; signature: string };
  const as = (value: object) => ({ ...headers, [OWNER_HEADERS.operation]: JSON.stringify(value) });
  const s = BigInt(`0x${operation.signature.slice(64)}`);
  const other = (ORDER - s).toString(16).padStart(64, '0');
  return [
    headers,
    { ...headers, [OWNER_HEADERS.operation]: ` ${headers[OWNER_HEADERS.operation]} ` },
    as({ signature: operation.signature, payload: operation.payload }),
    as({ ...operation, more: 1 }),
    as({ ...operation, payload: operation.payload.toUpperCase() }),
    as({ ...operation, payload: `0x${operation.payload}` }),
    // The mark of the order of bytes, which readers of text leave out.
    as({ ...operation, payload: `efbbbf${operation.payload}` }),
    as({ ...operation, signature: operation.signature.toUpperCase() }),
    as({ ...operation, signature: `0x${operation.signature}` }),
    as({ ...operation, signature: operation.signature.slice(0, 64) + other }),
  ];
}

test('H4: an operation counts once, however it is written', async () => {
  const headers = await signed('POST', `${MACHINE}/reboot`);
  const spellings = spellingsOf(headers);
  assert.deepEqual(await post(`${MACHINE}/reboot`, spellings[0]!), [200, undefined]);
  for (const one of spellings) {
    const [status] = await post(`${MACHINE}/reboot`, one);
    assert.ok(status === 401 || status === 400, `${status}: ${one[OWNER_HEADERS.operation]}`);
  }
  assert.equal(asked, 1);
});

test('H4: an operation counts once over a restart of the node', async () => {
  const headers = await signed('POST', `${MACHINE}/reboot`);
  assert.deepEqual(await post(`${MACHINE}/reboot`, headers), [200, undefined]);
  await app.close();
  await open();
  assert.deepEqual(await post(`${MACHINE}/reboot`, headers), [401, 'INVALID_SIGNATURE']);
  nowMs += 2 * OPERATION_WINDOW_MS + 1;
  assert.deepEqual(await post(`${MACHINE}/reboot`, headers), [401, 'INVALID_SIGNATURE'], 'it has expired');
  await app.close();
  await open();
  assert.equal(await readFile(join(directory, 'operations.jsonl'), 'utf8'), '', 'what is over is forgotten');
});

test('H4: what was noted counts also where a restart finds the disk full', () =>
  onDiskOf(1, async (disk) => {
    const load = () => Replays.load({ windowMs: OPERATION_WINDOW_MS }, join(disk, 'a.jsonl'), log, nowMs);
    await (await load()).note(owner.address, 'a', nowMs);
    await fillDisk(disk);
    await assert.rejects((await load()).note(owner.address, 'a', nowMs), { code: 'INVALID_SIGNATURE' });
  }));

test('deployed clients sign neither query nor body: that is enough where these decide little', async () => {
  const json = 'application/json';
  const expire = `${MACHINE}/expire`;
  const send = async (path: string, signedPath: string, body?: string) =>
    post(path, await signed('POST', signedPath), body, body && json);
  assert.deepEqual(await send(expire, expire, '{"timeout":60}'), [200, undefined]);
  assert.deepEqual(await send(expire, expire, '{"timeout":-1}'), [400, 'INVALID_PARAMETERS']);
  const reinstall = `${MACHINE}/reinstall`;
  assert.deepEqual(await send(`${reinstall}?erase_volumes=false`, reinstall), [200, undefined]);
  const restore = `${MACHINE}/restore`;
  assert.deepEqual(await send(restore, restore, '{"snapshot":"a"}'), [401, 'INVALID_SIGNATURE']);
  assert.equal(asked, 2);
  // What is signed has to be right all the same.
  const headers = await signed('POST', expire, '{"timeout":60}');
  assert.deepEqual(await post(expire, headers, '{"timeout":61}', json), [401, 'INVALID_SIGNATURE']);
  assert.equal(asked, 2);
});

test('what a reinstall erases beside the disk is what its owner signed: nobody on the way adds to it', async () => {
  const reinstall = `${MACHINE}/reinstall`;
  const erasing = `${reinstall}?erase_volumes=true`;
  assert.deepEqual(await post(erasing, await signed('POST', reinstall)), [401, 'INVALID_SIGNATURE']);
  assert.equal(asked, 0);
  assert.deepEqual(await post(erasing, await signed('POST', erasing)), [200, undefined]);
  assert.equal(asked, 1);
});

test('room is kept for whoever signs what is to be placed, or it is said why not', async () => {
  const reserve = '/control/reserve_resources';
  const content = (vcpus: number, ref = 'debian:12') =>
    JSON.stringify({
      ...{ address: owner.address, time: nowMs / 1000, allow_amend: false },
      ...{ resources: { vcpus, memory: 512 }, environment: { internet: true } },
      rootfs: { parent: { ref }, size_mib: 2_048 },
    });
  const send = async (body: string) => {
    // What is asked anew is signed anew.
    nowMs += 1;
    return post(reserve, await signed('POST', reserve), body, 'application/json');
  };
  assert.deepEqual(await send(content(1)), [200, undefined]);
  assert.deepEqual(await send(content(9)), [400, 'NO_CAPACITY']);
  assert.deepEqual(await send(content(1, 'fedora')), [400, 'UNKNOWN_IMAGE']);
  assert.deepEqual(await send('{}'), [400, 'INVALID_CONTENT']);
  assert.deepEqual(await post(reserve, {}, content(1), 'application/json'), [401, 'SIGNATURE_REQUIRED']);
});

test('what the examples of the contract send is taken, and answered as they show', async () => {
  const ids = [
    ...(['reserveResources', 'expireMachine', 'restoreMachine'] as const),
    ...(['stopMachine', 'rebootMachine', 'reinstallMachine'] as const),
    ...(['listSnapshots', 'createSnapshot', 'deleteSnapshot'] as const),
  ];
  for (const id of ids) {
    const operation = MACHINES_API[id];
    const example = COMPUTE_EXAMPLES[id]!;
    const answered = await checkOperation(
      async (sent) => overHttp(() => url, await signed(sent.method, sent.url, sent.payload))(sent),
      operation,
      { ...example, params: { ...example.params, ref: ID } },
    );
    assert.equal(answered.statusCode, 200, `${id}: ${answered.payload}`);
    assert.deepEqual(listUnanswered(operation, example, [answered]), [], id);
  }
});

test('H4: the body of an operation is the one that was signed', async () => {
  const octets = 'application/octet-stream';
  const image = new Uint8Array([1, 2, 3]);
  const other = new Uint8Array([1, 2, 4]);
  const restore = `${MACHINE}/restore`;
  const taken = await post(restore, await signed('POST', restore, image), image, octets);
  assert.deepEqual([taken, asked], [[200, undefined], 1]);
  for (const [mine, sent, type] of [
    [image, other, octets],
    [undefined, image, octets],
    ['{"snapshot":"one"}', '{"snapshot":"two"}', 'application/json'],
    [undefined, '{"snapshot":"two"}', 'application/json'],
    [image, '{"snapshot":"two"}', 'application/json'],
  ] as const)
    assert.deepEqual(await post(restore, await signed('POST', restore, mine), sent, type), [
      401,
      'INVALID_SIGNATURE',
    ]);
  assert.equal(asked, 1);
  const left = (await readdir(directory)).filter((name) => name.startsWith('upload-'));
  assert.deepEqual(left, [], 'no image that was refused stays');
});

test('an instance is restored once at a time, however many disk images its owner sends or names', async () => {
  const octets = 'application/octet-stream';
  const image = new Uint8Array([1, 2, 3]);
  const restore = `${MACHINE}/restore`;
  const send = async () => {
    nowMs++;
    return post(restore, await signed('POST', restore, image), image, octets);
  };
  const slow = connect(Number(new URL(url).port), '127.0.0.1');
  const headers = { ...(await signed('POST', restore, image)), 'content-type': octets };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  slow.write(`POST ${restore} HTTP/1.1\r\nhost: here\r\n${lines.join('')}content-length: 3\r\n\r\n\x01`);
  const isBegun = async () => (await readdir(directory)).some((name) => name.startsWith('upload-'));
  await until('the first one is received', isBegun);
  assert.deepEqual(await send(), [409, 'INSTANCE_BUSY']);
  const named = JSON.stringify({ volume_ref: 'f'.repeat(64) });
  const headersOfNamed = await signed('POST', restore, named);
  assert.deepEqual(await post(restore, headersOfNamed, named, 'application/json'), [409, 'INSTANCE_BUSY']);
  slow.write('\x02\x03');
  await until('the first one is whole', () => asked === 1);
  await until('its file is gone', async () => !(await isBegun()));
  assert.deepEqual(await send(), [200, undefined]);
  slow.destroy();
});

test('H4: the query of a change and the id of the node are covered', async () => {
  const path = `${MACHINE}/reboot`;
  assert.deepEqual(await post(`${path}?hard=true`, await signed('POST', path)), [401, 'INVALID_SIGNATURE']);
  const pass = await OwnerPass.create(owner, { ...NODE, nodeId: 'b'.repeat(64) }, nowMs);
  assert.deepEqual(await post(path, await pass.headers({ method: 'POST', path }, nowMs)), [
    401,
    'INVALID_SIGNATURE',
  ]);
  const deployed = await OwnerPass.create(owner, { domain: NODE.domain }, nowMs);
  assert.deepEqual(await post(path, await deployed.headers({ method: 'POST', path }, nowMs)), [
    200,
    undefined,
  ]);
});

test('a delegate is permitted by what the core node says in the form of its contract, and by nothing else', async () => {
  const path = `${MACHINE}/reboot`;
  const ask = async () => post(path, await signed('POST', path, undefined, stranger));
  const security = { authorizations: [{ address: stranger.address }] };
  assert.deepEqual(await ask(), [403, 'NOT_PERMITTED']);
  aggregates = JSON.stringify({ address: owner.address, data: { security } });
  assert.deepEqual(await ask(), [200, undefined]);
  nowMs++;
  for (const answer of ['null', '{"data":7}', JSON.stringify({ security }), '<html>']) {
    aggregates = answer;
    assert.deepEqual(await ask(), [503, 'UNEXPECTED_ANSWER'], answer);
  }
  assert.equal(asked, 1);
});

test('what an owner made of an aggregate is read up to a limit, whoever has it read', async () => {
  const path = `${MACHINE}/reboot`;
  const authorizations = [{ address: stranger.address }];
  const of = (chars: number) =>
    JSON.stringify({
      address: owner.address,
      data: { security: { more: 'x'.repeat(chars), authorizations } },
    });
  const ask = async () => post(path, await signed('POST', path, undefined, stranger));
  aggregates = of(LIMITS.contentFileBytes);
  assert.deepEqual(await ask(), [503, 'UNEXPECTED_ANSWER']);
  aggregates = of(LIMITS.contentFileBytes / 2);
  assert.deepEqual([await ask(), asked], [[200, undefined], 1]);
});

async function stream(auth: object): Promise<string> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}${MACHINE}/stream_logs`);
  await once(socket, 'open');
  socket.send(JSON.stringify({ auth }));
  const [data] = (await once(socket, 'message')) as [Buffer];
  socket.terminate();
  return (JSON.parse(String(data)) as { status: string }).status;
}

test('H4: a stream of logs checks its own path, and counts once', async () => {
  const pass = await OwnerPass.create(owner, NODE, nowMs);
  assert.equal(await stream(await pass.sign({ method: 'GET', path: '/whatever' }, nowMs)), 'failed');
  assert.equal(await stream(await pass.sign({ method: 'GET', path: `${MACHINE}/logs` }, nowMs)), 'failed');
  const right = await pass.sign({ method: 'GET', path: `${MACHINE}/stream_logs` }, nowMs);
  assert.equal(await stream(right), 'connected');
  assert.equal(await stream(right), 'failed');
});

test('M9: strangers leave no trace in what is remembered, and an owner fills only an own share', async () => {
  const path = `${MACHINE}/reboot`;
  const pass = await OwnerPass.create(stranger, NODE, nowMs);
  for (let round = 0; round < 50; round++)
    assert.deepEqual(await post(path, await pass.headers({ method: 'POST', path }, nowMs + round)), [
      403,
      'NOT_PERMITTED',
    ]);
  assert.equal(await readFile(join(directory, 'operations.jsonl'), 'utf8'), '');
  const other = `0x${'1'.repeat(40)}`;
  const seen = new Replays({ windowMs: OPERATION_WINDOW_MS });
  await assert.rejects(
    async () => {
      for (let round = 0; round < 30_000; round++) await seen.note(other, String(round), nowMs + round);
    },
    // A second before the first of them is forgotten.
    { code: 'RATE_LIMITED', details: { retry_after: (2 * OPERATION_WINDOW_MS) / 1_000 - 1 } },
  );
  await seen.note(owner.address, 'one', nowMs);
});

test('of a deleted instance nothing is left where its owner has it erased, its backups neither', async () => {
  const id = 'd'.repeat(64);
  const record = { id, base: null, wanted: { owner: owner.address } } as unknown as InstanceRecord;
  for (const one of [instanceDirectory(directory, id), join(directory, 'backups', id)])
    await mkdir(one, { recursive: true });
  await writeFile(join(directory, 'backups', id, 'a.qcow2'), 'what was on the disk');
  await putAside(directory, record, 'forgotten', nowMs);
  const erase = `/control/machine/${id}/erase`;
  const listLeft = () => Promise.all(['released', 'backups'].map((name) => readdir(join(directory, name))));
  const strangers = await signed('POST', erase, undefined, stranger);
  assert.deepEqual(await post(erase, strangers), [404, 'INSTANCE_NOT_FOUND']);
  assert.deepEqual(
    (await listLeft()).map((names) => names.length),
    [1, 1],
  );
  assert.deepEqual(await post(erase, await signed('POST', erase)), [200, undefined]);
  assert.deepEqual(await listLeft(), [[], []]);
});
