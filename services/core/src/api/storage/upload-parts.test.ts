import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { signMessage } from '@skerry/client';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger, listen } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { CREDIT_CHANNEL, CREDIT_POST, parseItemHash } from '@skerry/protocol';
import { acceptMessage } from '../../intake/accept.ts';
import { createS3Pieces } from '../../store/files/s3/pieces.ts';
import { createS3BlobStore } from '../../store/files/s3/store.ts';
import { startTestS3 } from '../../store/files/testing/s3-server.ts';
import type { Schema } from '../../store/schema.ts';
import { createTestCore, MIGRATIONS, signers, type TestCore } from '../../testing/core.ts';

const LIMIT = 1024 * 1024;
const OCTETS = 'application/octet-stream';
const hashOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

const placeOf = (whole: Uint8Array, offset: number, more: Record<string, string> = {}) => {
  const hash = hashOf(whole);
  const { alice } = signers;
  const query = { address: alice.address, signature: alice.sign(hash), size: whole.length, offset, ...more };
  const text = Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]);
  return `/api/v0/storage/uploads/${hash}?${new URLSearchParams(text)}`;
};
async function putPart(url: string, place: string, body: Uint8Array, type = OCTETS) {
  const answer = await fetch(url + place, {
    method: 'PUT',
    headers: { 'content-type': type },
    body: body as BodyInit,
  });
  return (await answer.json()) as Record<string, unknown>;
}

async function readUpload(url: string, whole: Uint8Array, size = whole.length, by = signers.alice) {
  const query = `address=${by.address}&size=${size}`;
  const answer = await fetch(`${url}/api/v0/storage/uploads/${hashOf(whole)}?${query}`);
  return (await answer.json()) as { received: number; item_hash: string | null };
}
const readProgress = async (url: string, whole: Uint8Array) => (await readUpload(url, whole)).received;

describe('a file in parts, over a socket', () => {
  let core: TestCore;
  let url: string;
  before(async () => {
    core = await createTestCore({ uploadLimitBytes: LIMIT });
    url = await listen(core.api, '127.0.0.1', 0);
  });
  after(() => core[Symbol.asyncDispose]());

  const { alice, bob } = signers;
  const put = (place: string, body: Uint8Array, type?: string) => putPart(url, place, body, type);
  const progress = (whole: Uint8Array) => readProgress(url, whole);

  test('what arrived before the connection broke is not sent again, and the whole is kept for its uploader', async () => {
    const whole = randomBytes(500_000);
    const hash = hashOf(whole);
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    socket.write(
      `PUT ${placeOf(whole, 0)} HTTP/1.1\r\nHost: x\r\nContent-Type: ${OCTETS}\r\nContent-Length: ${whole.length}\r\n\r\n`,
    );
    socket.write(whole.subarray(0, 200_000));
    await until(
      'the first bytes are there',
      () => progress(whole),
      (received) => received === 200_000,
    );
    socket.destroy();
    assert.equal((await fetch(`${url}/api/v0/storage/${hash}`)).status, 404);
    const rest = () => put(placeOf(whole, 200_000, { content_type: 'image/png' }), whole.subarray(200_000));
    // The node notices the end of the other in its own time.
    const done = await until('the rest is taken', rest, ({ code }) => code !== 'OVERLOADED');
    const { item_hash: itemHash, ...told } = done;
    assert.deepEqual(told, { file_hash: hash, size: whole.length, received: whole.length });
    const kept = await fetch(`${url}/api/v0/storage/raw/${hash}`);
    assert.equal(hashOf(new Uint8Array(await kept.arrayBuffer())), hash);
    const { body: message } = await core.get(`/messages/${itemHash}`);
    assert.deepEqual(
      [message.type, message.sender, message.signed_text, message.content.content_type],
      ['STORE', alice.address, hash, 'image/png'],
    );
    // Who lost that answer is told again, whichever way it asks.
    assert.deepEqual(await readUpload(url, whole), done);
    for (const offset of [0, 200_000, whole.length])
      assert.deepEqual(await put(placeOf(whole, offset), whole.subarray(offset)), done);
    // It is this uploader's, of this size, and only while the file is there.
    const nothing = async (...more: [number?, typeof bob?]) => {
      const { received, item_hash } = await readUpload(url, whole, ...more);
      assert.deepEqual([received, item_hash], [0, null]);
    };
    await nothing(whole.length, bob);
    await nothing(whole.length + 1);
    await core.blobs.remove(parseItemHash(hash));
    await nothing();
    assert.deepEqual(await put(placeOf(whole, 0), whole), done);
    assert.equal((await fetch(`${url}/api/v0/storage/raw/${hash}`)).status, 200);
    await core.send(alice, { type: 'FORGET', content: { hashes: [itemHash] } });
    await core.rooms.pipeline.idle();
    await nothing();
    assert.equal((await put(placeOf(whole, 0), whole)).code, 'MESSAGE_FORGOTTEN');
    assert.equal(await progress(whole), 0, 'nothing of what will be refused again is kept');
  });

  test('a whole is put together once, whoever asks for it meanwhile', async (t) => {
    const { files } = core.rooms;
    const receive = files.receive.bind(files);
    const arrived = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    let copies = 0;
    const { mock } = t.mock.method(files, 'receive', async (...what: Parameters<typeof receive>) => {
      arrived.resolve();
      if (copies++ === 0) await goOn.promise;
      return receive(...what);
    });
    const whole = randomBytes(1_000);
    const first = put(placeOf(whole, 0), whole);
    await arrived.promise;
    const again = () => put(placeOf(whole, whole.length), new Uint8Array());
    assert.equal((await again()).code, 'OVERLOADED');
    goOn.resolve();
    const done = await first;
    assert.match(String(done.item_hash), /^[0-9a-f]{64}$/);
    assert.deepEqual(await again(), done);
    assert.equal(copies, 1);
    mock.restore();
  });

  test('a part that begins elsewhere is not taken, and told where to go on', async () => {
    const whole = randomBytes(1_000);
    assert.equal((await put(placeOf(whole, 0), whole.subarray(0, 300))).received, 300);
    const told = await put(placeOf(whole, 700), whole.subarray(700));
    assert.deepEqual([told.received, told.item_hash], [300, null]);
    assert.equal((await put(placeOf(whole, 300), whole.subarray(300))).received, 1_000);
  });

  test('what is not what was signed is refused and begins anew; strangers and too much are refused before a byte', async () => {
    const whole = randomBytes(1_000);
    assert.equal((await put(placeOf(whole, 0), randomBytes(1_000))).code, 'HASH_MISMATCH');
    assert.equal(await progress(whole), 0);
    const hash = hashOf(whole);
    const refused: [Record<string, string>, string][] = [
      [{ signature: bob.sign(hash) }, 'INVALID_SIGNATURE'],
      [{ address: '0x1' }, 'INVALID_ADDRESS'],
      [{ size: String(LIMIT + 1) }, 'FILE_TOO_LARGE'],
      [{ size: '0' }, 'INVALID_PARAMETERS'],
      [{ offset: '-1' }, 'INVALID_PARAMETERS'],
      [{ colour: 'red' }, 'UNKNOWN_FIELD'],
    ];
    for (const [more, code] of refused) assert.equal((await put(placeOf(whole, 0, more), whole)).code, code);
    assert.equal((await put(placeOf(whole, 0), whole, 'text/plain')).code, 'UNSUPPORTED_MEDIA_TYPE');
    assert.equal(await progress(whole), 0);
  });
});

/** Two machines of one node. */
async function startMachines(stack: AsyncDisposableStack) {
  const log = createLogger('test', 'silent');
  const { settings: s3 } = stack.use(await startTestS3());
  const database = stack.use(await createTestDatabase<Schema>({ migrations: MIGRATIONS, log }));
  const startMachine = async () => {
    const spool = await mkdtemp(join(tmpdir(), 'skerry-spool-'));
    stack.defer(() => rm(spool, { recursive: true, force: true }));
    const blobs = await createS3BlobStore(s3, spool);
    const core = stack.use(
      await createTestCore({ database, blobs, pieces: createS3Pieces(s3), uploadLimitBytes: LIMIT }),
    );
    return { core, url: await core.listen() };
  };
  return [await startMachine(), await startMachine()] as const;
}

test('a file that one machine has begun is ended by another one, where they share an object store', async () => {
  await using stack = new AsyncDisposableStack();
  const [{ url: first }, { url: second }] = await startMachines(stack);
  const whole = randomBytes(LIMIT);
  const [head, rest] = [whole.subarray(0, 700_000), whole.subarray(700_000)];
  const begun = await putPart(first, placeOf(whole, 0), head);
  assert.equal(begun.received, head.length);
  assert.equal(await readProgress(second, whole), head.length);
  const ended = await putPart(second, placeOf(whole, head.length), rest);
  assert.match(String(ended.item_hash), /^[0-9a-f]{64}$/);
  const kept = await fetch(`${first}/api/v0/storage/raw/${hashOf(whole)}`);
  assert.equal(hashOf(new Uint8Array(await kept.arrayBuffer())), hashOf(whole));
});

test('a file that two machines put together at once is stored, as both say', async (t) => {
  await using stack = new AsyncDisposableStack();
  const [first, second] = await startMachines(stack);
  const whole = randomBytes(1_000);
  const { files } = second.core.rooms;
  const receive = files.receive.bind(files);
  const told: Record<string, unknown>[] = [];
  // Before the second one has read a byte of it, the first one has ended it and removed its parts.
  t.mock.method(files, 'receive', async (...what: Parameters<typeof receive>) => {
    told.push(await putPart(first.url, placeOf(whole, whole.length), new Uint8Array()));
    return receive(...what);
  });
  told.push(await putPart(second.url, placeOf(whole, 0), whole));
  assert.match(String(told[0]!.item_hash), /^[0-9a-f]{64}$/);
  assert.deepEqual(told, [told[0], told[0]]);
});

test('an upload that its owner has no credit for is refused before anything of it is kept, and taken once there is credit', async (t) => {
  let nowMs = Date.now();
  await using core = await createTestCore({ creditEnforcement: true, now: () => nowMs });
  const url = await listen(core.api, '127.0.0.1', 0);
  const { files, parts, intake, pipeline } = core.rooms;
  const { alice, credit } = signers;
  const [whole, begun] = [randomBytes(2_000), randomBytes(2_000)];
  const hash = hashOf(begun);
  const sizeBytes = begun.length;
  // Of what it had the credit for when it began, all is here.
  await parts.append({ hash, address: alice.address, sizeBytes }, 0, Readable.from([begun]));
  const receive = t.mock.method(files, 'receive');
  const isRefused = async (answer: Promise<Record<string, unknown>>) =>
    assert.equal((await answer).code, 'CREDIT_INSUFFICIENT');
  await isRefused(putPart(url, placeOf(whole, 0), whole));
  assert.equal(await readProgress(url, whole), 0);
  const end = () => putPart(url, placeOf(begun, sizeBytes), new Uint8Array());
  await isRefused(end());
  assert.equal(await readProgress(url, begun), sizeBytes);
  assert.equal(receive.mock.callCount(), 0, 'nothing is read again that will be refused');
  const form = new FormData();
  form.set('address', alice.address);
  form.set('signature', alice.sign(hashOf(whole)));
  form.set('file', new Blob([whole]));
  const upload = async () => {
    const answer = await fetch(`${url}/api/v0/storage/store`, { method: 'POST', body: form });
    return (await answer.json()) as Record<string, unknown>;
  };
  await isRefused(upload());
  assert.equal(await core.blobs.find(parseItemHash(hashOf(whole))), undefined);
  // As where another upload took the credit between the two looks.
  const fields = { address: alice.address, signature: alice.sign(hash), channel: 'files', tags: [] };
  const late = intake.client.readUpload(fields, { hash, sizeBytes, contentType: OCTETS });
  assert.equal((await intake.client.keep(late)).reason?.code, 'CREDIT_INSUFFICIENT');
  // Nor is it there for whoever forgets it in the same moment.
  const content = { hashes: [late.message.itemHash], reason: 'none' };
  const draft = { type: 'FORGET', channel: 'files', content, timestamp: Math.floor(nowMs / 1000) } as const;
  const forget = await intake.client.read(Buffer.from(signMessage(draft, alice).body));
  const [, verdict] = await Promise.all([intake.client.keep(late), intake.client.keep(forget)]);
  assert.equal(verdict.status, 'pending');
  nowMs += 10_000;
  const { address } = alice;
  const distribution = { credits: [{ address, amount: 1_000, ref: 'r' }] };
  const post = { type: CREDIT_POST.distribution, content: { distribution } };
  const timestamp = Math.floor(nowMs / 1000);
  await core.send(credit, { type: 'POST', channel: CREDIT_CHANNEL, content: post, timestamp });
  await pipeline.idle();
  nowMs += 10_000;
  assert.equal((await upload()).status, 'success');
  assert.match(String((await end()).item_hash), /^[0-9a-f]{64}$/);
});

test('a file whose message came long ago, and whose bytes never did, is taken in parts', async () => {
  let nowMs = Date.now();
  await using core = await createTestCore({ now: () => nowMs, pendingHorizonMs: 1_000 });
  const url = await listen(core.api, '127.0.0.1', 0);
  const { intake, pipeline } = core.rooms;
  const { alice } = signers;
  const whole = randomBytes(1_000);
  const file = { hash: hashOf(whole), sizeBytes: whole.length, contentType: OCTETS };
  const fields = { address: alice.address, signature: alice.sign(file.hash), channel: 'files', tags: [] };
  const { message } = intake.client.readUpload(fields, file);
  await intake.peer.keep([{ accepted: acceptMessage(message) }]);
  nowMs += 1_000;
  await pipeline.expire();
  await pipeline.idle();
  const { body } = await core.get(`/messages/${message.itemHash}`);
  assert.equal(body.status, 'rejected');
  assert.equal((await putPart(url, placeOf(whole, 0), whole)).item_hash, message.itemHash);
});
