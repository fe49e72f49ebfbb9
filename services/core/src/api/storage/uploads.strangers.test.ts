import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { until } from '@skerry/kit/testing/until';
import { createDirectoryBlobStore } from '../../store/files/directory-store.ts';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import { limitsExcept } from '../../testing/strangers.ts';

const KIB = 1024;
const OWN = '127.0.0.9';
const hashOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly body: { readonly code?: string; readonly hash?: string; readonly item_hash?: string };
}

/** Sends from one of this machine's addresses. */
async function send(
  url: string,
  localAddress: string,
  body: Buffer,
  contentType = 'application/octet-stream',
): Promise<Answer> {
  const asked = request(url, {
    method: 'POST',
    localAddress,
    agent: false,
    headers: { 'content-type': contentType, 'content-length': body.length },
  });
  asked.end(body);
  const [response] = await once(asked, 'response');
  // A refusal may come before all of the body has gone: what is left of it does not arrive.
  asked.on('error', () => {});
  let text = '';
  for await (const chunk of response) text += chunk;
  return {
    status: response.statusCode,
    retryAfter: response.headers['retry-after'],
    body: JSON.parse(text),
  };
}

const FORM = 'multipart/form-data; boundary=b';
const FILE_HEAD = '--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n';
const partOf = (name: string, value: string) =>
  `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;

function formOf(file: Buffer, fields: Readonly<Record<string, string>>, after = ''): [Buffer, string] {
  const parts = Object.entries(fields).map(([name, value]) => partOf(name, value));
  const head = Buffer.from(parts.join('') + FILE_HEAD);
  return [Buffer.concat([head, file, Buffer.from(`\r\n${after}--b--\r\n`)]), FORM];
}

const createCore = () =>
  createTestCore({
    settings: {
      limits: {
        isEnabled: true,
        perMinute: { general: 100_000, authenticated: 100_000, heavy: 10 },
        trustedProxies: [],
        exempt: [OWN],
      },
      uploads: 10,
      uploadsPerClient: 2,
      unpinnedBytes: 2_000 * KIB,
      unpinnedBytesPerClient: 800 * KIB,
    },
  });

describe('uploads of strangers', () => {
  let core: TestCore;
  let root: string;
  before(async () => {
    core = await createCore();
    root = `${await core.listen()}/api/v0`;
  });
  after(() => core[Symbol.asyncDispose]());

  const add = (from: string, bytes: Buffer) => send(`${root}/storage/add_file`, from, bytes);

  test('M10: files without a message have a share per client and a bound for all; signed files are taken', async () => {
    const kept: Buffer[] = [];
    for (let n = 0; n < 4; n++) {
      const bytes = randomBytes(190 * KIB);
      kept.push(bytes);
      assert.equal((await add('127.0.0.2', bytes)).status, 200);
    }
    const refused = await add('127.0.0.2', randomBytes(190 * KIB));
    assert.deepEqual(
      [refused.status, refused.body.code, refused.retryAfter],
      [429, 'UPLOAD_SHARE_USED', '3600'],
    );
    assert.equal(
      (await send(`${root}/ipfs/add_json`, '127.0.0.2', Buffer.from('"x"'), 'application/json')).status,
      429,
    );
    assert.equal(
      (await send(`${root}/storage/add_json`, '127.0.0.2', Buffer.from('"x"'), 'application/json')).status,
      429,
    );

    const signed = randomBytes(10 * KIB);
    const { address } = signers.alice;
    const form = formOf(signed, { address, signature: signers.alice.sign(hashOf(signed)) });
    assert.equal((await send(`${root}/storage/store`, '127.0.0.2', ...form)).status, 200);

    // A message that keeps a file gives its room back.
    const claimed = formOf(kept[0]!, { address, signature: signers.alice.sign(hashOf(kept[0]!)) });
    assert.equal((await send(`${root}/storage/store`, '127.0.0.3', ...claimed)).status, 200);
    assert.equal((await add('127.0.0.2', randomBytes(190 * KIB))).status, 200);

    for (let n = 0; n < 4; n++) assert.equal((await add('127.0.0.4', randomBytes(190 * KIB))).status, 200);
    for (let n = 0; n < 2; n++) assert.equal((await add('127.0.0.5', randomBytes(190 * KIB))).status, 200);
    const full = await add('127.0.0.5', randomBytes(190 * KIB));
    assert.deepEqual([full.status, full.body.code, full.retryAfter], [507, 'STORAGE_FULL', '3600']);
    assert.equal((await add(OWN, randomBytes(190 * KIB))).status, 200, 'own services are not counted');
  });

  test('M10: a forged message beside a file does not have it received', async () => {
    const form = formOf(randomBytes(300 * KIB), { metadata: '{"message":{"type":"STORE"}}' });
    assert.equal((await send(`${root}/ipfs/add_file`, '127.0.0.2', ...form)).status, 401);
    const { rows } = await core.rooms.db
      .selectFrom('files')
      .select('hash')
      .where('size_bytes', '>', 250 * KIB)
      .execute()
      .then((rows) => ({ rows }));
    assert.deepEqual(rows, []);
  });

  test('M10: a client sends a few files at once, and others come in beside it', async () => {
    const open = async (localAddress: string) => {
      const asked = request(`${root}/storage/store`, {
        method: 'POST',
        localAddress,
        agent: false,
        headers: { 'content-type': FORM },
      });
      asked.on('error', () => {});
      asked.write(`${FILE_HEAD}abc`);
      return asked;
    };
    const held = [await open('127.0.0.6'), await open('127.0.0.6')];
    const underWay = () => core.rooms.uploadPlaces.taken;
    await until('both are under way', underWay, (count) => count === 2);
    const bytes = randomBytes(KIB);
    const form = formOf(bytes, {
      address: signers.bob.address,
      signature: signers.bob.sign(hashOf(bytes)),
    });
    const store = (from: string) => send(`${root}/storage/store`, from, ...form);
    const waiting = [store('127.0.0.6'), store('127.0.0.6')];
    await until(
      'two more wait',
      () => core.rooms.uploadPlaces.waiting,
      (count) => count === 2,
    );
    const refused = await store('127.0.0.6');
    assert.deepEqual([refused.status, refused.body.code, refused.retryAfter], [429, 'RATE_LIMITED', '10']);
    assert.equal((await store('127.0.0.7')).status, 200);
    for (const one of held) one.destroy();
    for (const { status } of await Promise.all(waiting)) assert.equal(status, 200);
    await until('all have ended', underWay, (count) => count === 0);
  });
});

test('who sends much in a minute is not slow; of what gave way nothing is left', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-uploads-'));
  t.after(() => rm(home, { recursive: true }));
  await using core = await createTestCore({
    blobs: await createDirectoryBlobStore(home),
    uploadLimitBytes: 64 * KIB * KIB,
    settings: { limits: limitsExcept(OWN), uploads: 2, uploadsPerClient: 1 },
  });
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { uploadPlaces } = core.rooms;
  const url = `${await core.listen()}/api/v0/storage/store`;
  const begin = (localAddress: string, bytes: number) => {
    const headers = { 'content-type': FORM };
    const asked = request(url, { method: 'POST', localAddress, agent: false, headers });
    asked.on('error', () => {}).write(FILE_HEAD);
    return { asked, sent: new Promise((resolve) => asked.write(randomBytes(bytes), resolve)) };
  };
  // More than the buffers of a connection hold, and a fair amount beside.
  const quick = begin('127.0.0.2', 32 * KIB * KIB);
  await quick.sent;
  const slow = begin('127.0.0.3', 1);
  await until(
    'both are under way',
    () => uploadPlaces.taken,
    (count) => count === 2,
  );
  const coming = begin('127.0.0.4', 1);
  await until('the slow one goes', () => {
    if (uploadPlaces.waiting > 0) t.mock.timers.tick(60_000);
    return slow.asked.destroyed;
  });
  assert.equal(quick.asked.destroyed, false);
  await coming.sent;
  const listSpool = () => readdir(join(home, 'incoming'));
  await until('of the slow one nothing is left', listSpool, ({ length }) => length === 2);
  for (const { asked } of [quick, coming]) asked.destroy();
  await until('nor of the others', listSpool, ({ length }) => length === 0);
});

test('a file that IPFS keeps counts, whatever comes after it in its form', async () => {
  await using core = await createCore();
  const url = `${await core.listen()}/api/v0/ipfs/add_file`;
  const add = async (after: string) => {
    const { body } = await send(url, '127.0.0.8', ...formOf(randomBytes(190 * KIB), {}, after));
    return body.code;
  };
  assert.equal(await add(partOf('x', 'y')), 'UNKNOWN_FIELD');
  assert.equal(await add(`${FILE_HEAD}x\r\n`), 'INVALID_PARAMETERS');
  assert.equal(await add(partOf('metadata', '{}')), 'SIGNATURE_REQUIRED');
  assert.equal(await add(partOf('x', 'y')), 'UNKNOWN_FIELD');
  assert.equal(await add(''), 'UPLOAD_SHARE_USED');
});

describe('a file that comes alone, as the body', () => {
  let core: TestCore;
  let url: string;
  before(async () => {
    core = await createCore();
    url = `${await core.listen()}/api/v0/storage/add_file`;
  });
  after(() => core[Symbol.asyncDispose]());

  const underWay = () => core.rooms.uploadPlaces.taken;
  /** Sends a little of it. */
  const begin = (localAddress: string) => {
    const headers = { 'content-type': 'application/octet-stream', 'content-length': 1_000 };
    const asked = request(url, { method: 'POST', localAddress, agent: false, headers });
    asked.write('abc');
    return asked;
  };

  test('has ended where its sender sends nothing for a minute or two, and gives its place back', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const ended = once(begin('127.0.0.2'), 'response');
    await until('it is under way', underWay, (count) => count === 1);
    const aMinuteLater = () => {
      t.mock.timers.tick(60_000);
      return underWay();
    };
    await until('it has ended', aMinuteLater, (count) => count === 0);
    const [{ statusCode, headers }] = await ended;
    assert.deepEqual([statusCode, headers.connection], [408, 'close']);
  });

  test('goes where its sender is slow, strangers have no place left and one waits: five clients kept all from all others', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const { uploadPlaces } = core.rooms;
    const told: unknown[] = [];
    const slow = Array.from({ length: 9 }, (_, n) =>
      begin(`127.0.1.${1 + Math.floor(n / 2)}`)
        .on('error', () => {})
        .on('response', (answer) => told.push([answer.statusCode, answer.headers['retry-after']])),
    );
    await until('all places are taken', underWay, (count) => count === 9);
    let status: number | undefined;
    void send(url, '127.0.0.3', randomBytes(KIB)).then((answer) => {
      status = answer.status;
    });
    await until('it is kept', () => {
      if (uploadPlaces.waiting > 0) t.mock.timers.tick(10_000);
      return status !== undefined;
    });
    assert.equal(status, 200);
    const ended = () => slow.filter(({ destroyed }) => destroyed).length;
    await until('one is ended', ended, (count) => count > 0);
    assert.deepEqual([ended(), underWay(), told], [1, 8, [[503, '10']]]);
    assert.match(await core.rooms.metrics.text(), /^skerry_let_go_total\{kind="sender"\} [1-9]/m);
    for (const one of slow) one.destroy();
    await until('nothing is under way', underWay, (count) => count === 0);
  });

  test('is refused with a reason where it is too large, however it is sent', async () => {
    const answer = await send(url, '127.0.0.2', randomBytes(1_100 * KIB));
    assert.deepEqual([answer.status, answer.body.code], [429, 'UPLOAD_SHARE_USED']);
    const own = await send(url, OWN, randomBytes(5_000 * KIB));
    assert.deepEqual([own.status, own.body.code], [413, 'FILE_TOO_LARGE']);
  });
});
