import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { CoreClient, createSigner, generatePrivateKey, OwnerPass, type Signer } from '@skerry/client';
import { CoreSync } from '@skerry/client/core-sync';
import {
  createClientOf,
  createHttpServer,
  createLogger,
  type HttpServer,
  listen,
  readConfig,
} from '@skerry/kit';
import { AppError, OPERATION_WINDOW_MS, sha256Hex } from '@skerry/protocol';
import type { LogLineView } from '@skerry/protocol/api/compute/machines';
import { WebSocket } from 'ws';
import { computeConfig } from '../config.ts';
import { addLogStream, LOG_STREAM_PATHS } from '../http/log-stream.ts';
import { addMachineRoutes, type MachineRoutes } from '../http/machines.ts';
import { OwnerAccess } from '../owner/access.ts';
import { Replays } from '../owner/replays.ts';
import { fillDisk, onDiskOf } from '../testing/directory.ts';
import { RealCore } from '../testing/real-core.ts';
import { until } from '../testing/wait.ts';
import { openPrograms, type ProgramService } from './open.ts';
import { callOf } from './testing/setup.ts';
import { storedZip } from './testing/zip.ts';

/** Programs from a real core node, over HTTP. */

/** Only what hangs takes as long. */
const SOON_MS = 100_000;
const log = createLogger('test', 'error');

let core: RealCore;
let owner: CoreClient;
let home: string;
let service: ProgramService;
let url: string;
const ending = new AbortController();
const nodeSigner = createSigner(generatePrivateKey());
const ownerSigner = createSigner(generatePrivateKey());
const NODE = { domain: '127.0.0.1', nodeId: sha256Hex('node') };
const closing = new AsyncDisposableStack();

async function openService(coreUrl: string, directory: string): Promise<ProgramService> {
  const config = readConfig(computeConfig, { SKERRY_HOME: directory });
  const client = new CoreClient({ url: coreUrl, signer: nodeSigner });
  const nodeId = sha256Hex(directory);
  const sync = new CoreSync(core.url);
  return openPrograms({ config, core: client, sync, nodeId, log, signal: ending.signal });
}

before(async () => {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  home = await mkdtemp(join(tmpdir(), 'skerry-programs-'));
  closing.defer(() => rm(home, { recursive: true, force: true }));
  core = closing.use(await new RealCore().start());
  owner = new CoreClient({ url: core.url, signer: ownerSigner });
  service = closing.use(await openService(core.url, home));
  const app = await createHttpServer({ log, socketPaths: LOG_STREAM_PATHS });
  const clientOf = createClientOf({ trustedProxies: [], exempt: ['127.0.0.1'] });
  await service.addRoutes(app, clientOf);
  const access = new OwnerAccess({
    coreUrl: core.url,
    domain: () => NODE.domain,
    nodeId: NODE.nodeId,
    replays: new Replays({ windowMs: OPERATION_WINDOW_MS }),
    now: Date.now,
  });
  const instances = { find: () => undefined, absenceOf: () => undefined } as never;
  const sources = { instances, programs: service.programs, access, log, clientOf };
  await app.register(async (scope) =>
    addMachineRoutes(scope as HttpServer, sources as unknown as MachineRoutes),
  );
  addLogStream(app, sources);
  url = await listen(app, '127.0.0.1', 0);
  closing.defer(() => app.close());
  const reporting = service.work();
  closing.defer(async () => {
    ending.abort();
    await reporting;
  });
});
after(() => closing.disposeAsync());

const publish = async (code: string, runtime = 'python3') =>
  (await owner.createProgram({ name: 'a', code, runtime, memory: 64, timeout: 60 })).item_hash;

describe('the code of a program', () => {
  test('is in its message, or a file named by its hash or by its message; it is checked and kept', async () => {
    const inline = await publish('def main(v):\n  return "inline"');
    assert.equal(await (await fetch(`${url}/vm/${inline}`)).text(), 'inline');
    const archive = storedZip({ 'main.py': 'def main(v):\n  return "from a file"' });
    const hash = sha256Hex(archive);
    const { item_hash: stored } = await owner.storeFile(new Blob([new Uint8Array(archive)]), 'a.zip', hash);
    for (const ref of [hash, stored]) {
      const answer = await fetch(`${url}/vm/${await publish(ref)}/`);
      assert.deepEqual(
        [answer.headers.get('net-program-code-ref'), await answer.text()],
        [hash, 'from a file'],
      );
    }
  });

  test('that is forgotten runs no more; what was never a program never did', async () => {
    const hash = await publish('def main(v):\n  return 1');
    await owner.postMessage({ type: 'FORGET', content: { hashes: [hash] } });
    await assert.rejects(
      service.programs!.run(hash, callOf(), 'test'),
      (error: AppError) => error.code === 'MESSAGE_FORGOTTEN' || error.code === 'PROGRAM_NOT_FOUND',
    );
    const note = await owner.postMessage({ type: 'POST', content: { type: 'note', content: 1 } });
    const statuses = [];
    for (const path of [note.item_hash, '0'.repeat(64), 'abc'])
      statuses.push((await fetch(`${url}/vm/${path}`)).status);
    assert.deepEqual(statuses, [404, 404, 400]);
  });

  test('is not taken from a core node that lies', async () => {
    const hash = await publish('def main(v):\n  return "true"');
    const real = await new CoreClient({ url: core.url }).getMessage(hash);
    const lies = [
      { ...real, signed_text: real.signed_text!.replace('true', 'fake') },
      { ...real, sender: `0x${'1'.repeat(40)}` },
      { ...real, signed_text: null, message: { ...real.message, item_type: 'inline', item_content: '{}' } },
      { ...real, message: { item_type: 'inline', item_content: '{}' } },
    ];
    const codes = ['HASH_MISMATCH', 'HASH_MISMATCH', 'HASH_MISMATCH', 'UNEXPECTED_ANSWER'];
    let lie = 0;
    const liar = createServer((_request, response) => response.end(JSON.stringify(lies[lie]))).listen(
      0,
      '127.0.0.1',
    );
    await once(liar, 'listening');
    const { port } = liar.address() as { port: number };
    await using own = await openService(`http://127.0.0.1:${port}`, join(home, 'liar'));
    closing.defer(() => liar.closeAllConnections());
    for (lie = 0; lie < lies.length; lie++)
      await assert.rejects(
        own.programs!.run(hash, callOf(), 'test'),
        (error) => error instanceof AppError && error.code === codes[lie],
      );
    liar.close();
  });
});

describe('over HTTP', () => {
  test('a request passes whole, and so does its answer; a traceback is text, or JSON for who asks for that', async () => {
    const hash = await publish(
      `export default { async fetch(r) {
        const { pathname, search } = new URL(r.url);
        if (pathname === '/raise') throw new Error('on purpose');
        const seen = [r.method, pathname + search, r.headers.get('cookie'), await r.text()].join(' ');
        return new Response(seen, { status: 201, headers: { 'content-type': 'text/x-own', 'set-cookie': 'a=b' } });
      } }`,
      'nodejs',
    );
    const answer = await fetch(`${url}/vm/${hash}/a/b%20c?d=e`, {
      method: 'PATCH',
      body: 'body',
      headers: { cookie: 'secret' },
    });
    assert.deepEqual(
      [
        answer.status,
        answer.headers.get('content-type'),
        answer.headers.get('set-cookie'),
        await answer.text(),
      ],
      [201, 'text/x-own', null, 'PATCH /a/b%20c?d=e  body'],
    );
    assert.equal(answer.headers.get('net-program-itemhash'), hash);
    const failed = await fetch(`${url}/vm/${hash}/raise`);
    assert.deepEqual([failed.status, failed.headers.get('content-type')], [500, 'text/plain; charset=utf-8']);
    assert.match(await failed.text(), /^Error: on purpose/);
    const asJson = await fetch(`${url}/vm/${hash}/raise`, { headers: { accept: 'application/json' } });
    const body = (await asJson.json()) as { code: string; details: { traceback: string } };
    assert.deepEqual([asJson.status, body.code], [500, 'PROGRAM_FAILED']);
    assert.match(body.details.traceback, /on purpose/);
  });

  test('the diagnostic program passes its checks', async () => {
    const answer = await fetch(`${url}/status/check/fastapi`);
    assert.deepEqual(
      [answer.status, await answer.json()],
      [200, { index: true, environ: true, cache: true, error_handling: true, lifespan: true }],
    );
    const retro = await fetch(`${url}/status/check/fastapi?retro-compatibility=true`);
    assert.equal(Object.hasOwn((await retro.json()) as object, 'lifespan'), false);
  });

  test('runs are reported by the node, many in one message', async () => {
    const hash = await publish('def main(v):\n  return 1 / v["by"]');
    for (const by of [1, 0]) {
      const answer = await fetch(`${url}/run/${hash}`, {
        method: 'POST',
        body: JSON.stringify({ variables: { by } }),
      });
      await text(answer.body as never);
    }
    const reader = new CoreClient({ url: core.url });
    const seen = new Map<string, unknown>();
    await until('both runs are told', SOON_MS, async () => {
      const { messages } = await reader.listMessages({ channels: 'net-programs', limit: 100 });
      for (const { sender, content } of messages) {
        assert.equal(sender, nodeSigner.address);
        for (const run of (
          content as { content: { runs: { program_hash: string; outcome: string; reason: unknown }[] } }
        ).content.runs)
          if (run.program_hash === hash) seen.set(run.outcome, run.reason);
      }
      return seen.size === 2;
    });
    assert.deepEqual(
      [seen.get('answered'), seen.get('failed')],
      [null, { code: 'PROGRAM_FAILED', message: 'ZeroDivisionError: division by zero' }],
    );
  });
});

describe('the log of a program', () => {
  const pathOf = (hash: string, what = 'logs') => `/control/machine/${hash}/${what}`;
  const read = async (hash: string, by: Signer, query = '') => {
    const pass = await OwnerPass.create(by, NODE);
    const headers = await pass.headers({ method: 'GET', path: pathOf(hash) });
    const answer = await fetch(`${url}${pathOf(hash)}${query}`, { headers });
    return { status: answer.status, body: (await answer.json()) as LogLineView[] & { code?: string } };
  };
  const SAYS = 'import sys\ndef main(v):\n  print("said", v["n"])\n  print("loud", file=sys.stderr)';
  const say = (hash: string, n: number) =>
    fetch(`${url}/run/${hash}`, { method: 'POST', body: JSON.stringify({ variables: { n } }) });

  test('is for its owner, and for delegates of programs alone; strangers learn nothing', async () => {
    const hash = await publish(SAYS);
    const before = await read(hash, ownerSigner);
    assert.deepEqual([before.status, before.body.code], [404, 'INSTANCE_NOT_FOUND']);
    await say(hash, 1);
    const { status, body } = await read(hash, ownerSigner);
    assert.equal(status, 200);
    const shown = body.map(({ SYSLOG_IDENTIFIER: from, MESSAGE, file }) => [from, MESSAGE, file]);
    assert.deepEqual(shown.toSorted(), [
      [`vm-${hash}-stderr`, 'loud', 'stderr'],
      [`vm-${hash}-stdout`, 'said 1', 'stdout'],
    ]);
    assert.ok(Math.abs(Number(body[0]!.__REALTIME_TIMESTAMP) / 1000 - Date.now()) < SOON_MS);
    assert.equal((await read(hash, ownerSigner, '?limit=1')).body.length, 1);

    const [stranger, ofPrograms, ofInstances] = Array.from({ length: 3 }, () =>
      createSigner(generatePrivateKey()),
    ) as [Signer, Signer, Signer];
    const authorizations = [
      { address: ofPrograms.address, types: ['PROGRAM'] },
      { address: ofInstances.address, types: ['INSTANCE'] },
    ];
    await owner.postMessage({ type: 'AGGREGATE', content: { key: 'security', content: { authorizations } } });
    const answers = [];
    for (const by of [stranger, ofInstances, ofPrograms]) {
      const one = await read(hash, by);
      answers.push([one.status, one.body.code]);
    }
    assert.deepEqual(answers, [
      [403, 'NOT_PERMITTED'],
      [403, 'NOT_PERMITTED'],
      [200, undefined],
    ]);
    assert.equal((await fetch(`${url}${pathOf(hash)}`)).status, 401);
  });

  test('can be followed by its owner', { timeout: SOON_MS }, async () => {
    const hash = await publish(SAYS);
    await say(hash, 1);
    const follow = async (by: Signer) => {
      const socket = new WebSocket(`${url.replace('http', 'ws')}${pathOf(hash, 'stream_logs')}`);
      closing.defer(() => socket.terminate());
      await once(socket, 'open');
      const pass = await OwnerPass.create(by, NODE);
      const heard: { status?: string; type?: string; message?: string }[] = [];
      socket.on('message', (data) => heard.push(JSON.parse(String(data))));
      const auth = await pass.sign({ method: 'GET', path: pathOf(hash, 'stream_logs') });
      socket.send(JSON.stringify({ auth }));
      return heard;
    };
    const refused = await follow(createSigner(generatePrivateKey()));
    const heard = await follow(ownerSigner);
    await until('the past is told', SOON_MS, () => heard.length >= 3);
    await say(hash, 2);
    await until('what comes is told', SOON_MS, () => heard.length >= 5);
    assert.equal(heard[0]!.status, 'connected');
    const said = heard.filter(({ type }) => type === 'stdout').map(({ message }) => message);
    assert.deepEqual(said, ['said 1', 'said 2']);
    assert.deepEqual(
      refused.map(({ status }) => status),
      ['failed'],
    );
  });
});

test('a node that may not run programs says so, and announces none', async () => {
  const config = { ...readConfig(computeConfig, { SKERRY_HOME: home }), programs: false };
  const client = new CoreClient({ url: core.url, signer: nodeSigner });
  const silent = createLogger('test', 'silent');
  const sync = new CoreSync(core.url);
  const options = { core: client, sync, nodeId: sha256Hex('closed'), log: silent, signal: ending.signal };
  await using closed = await openPrograms({ config, ...options });
  assert.deepEqual(closed.features, []);
  const app = await createHttpServer({ log });
  await closed.addRoutes(app, createClientOf({ trustedProxies: [], exempt: ['127.0.0.1'] }));
  const answer = await app.inject({ url: `/vm/${'0'.repeat(64)}` });
  assert.deepEqual([answer.statusCode, answer.json().code], [503, 'NO_RUNNER']);
  await app.close();
  await onDiskOf(1, async (directory) => {
    await fillDisk(directory);
    const full = readConfig(computeConfig, { SKERRY_HOME: directory });
    await using service = await openPrograms({ config: full, ...options });
    assert.match(service.ability.reason ?? '', /disk is full/);
  });
});
