import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { lstat, mkdir, open, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { bareEnvironment } from '@skerry/kit/testing/environment';
import { until } from '@skerry/kit/testing/until';
import { itemHashOf, sha256Hex } from '@skerry/protocol';
import { skerryHere } from '../testing/here.ts';
import { replying } from '../testing/replying.ts';
import { createTestDir } from '../testing/run.ts';
import { keepRoom } from './write-file.ts';

const BIN = fileURLToPath(new URL('../../bin/skerry.js', import.meta.url));
const RAW = '/api/v0/storage/raw/';
const [ASKED, OTHER] = ['the file that is asked for', 'another file'];
const [HASH, OTHER_HASH] = [sha256Hex(ASKED), sha256Hex(OTHER)];
const SENDER = `0x${'1'.repeat(40)}`;
/** Who uploads a file signs its hash. */
const MESSAGE = itemHashOf('ETH', SENDER, HASH);

const messageWith = (signedText: string) => ({
  ...{ item_hash: MESSAGE, chain: 'ETH', sender: SENDER, type: 'STORE', channel: null, timestamp: 1 },
  ...{
    content: { item_hash: OTHER_HASH },
    signature: '',
    signed_text: signedText,
    confirmations: [],
    shared: null,
  },
  ...{ status: 'processed', reception_time: new Date(0).toISOString() },
});

/** A node that sends a file, whatever it is asked for, and tells of a message. */
const sending = (send: (response: ServerResponse) => void, message?: object) =>
  replying(({ pathname }, response) => {
    if (pathname.startsWith(RAW)) {
      send(response);
      return response;
    }
    if (pathname === `/api/v0/messages/${MESSAGE}` && message) return message;
    response.statusCode = 404;
    return { status: 'error', code: 'MESSAGE_NOT_FOUND', error: 'there is none' };
  });

const get = (home: string, url: string, ...args: string[]) =>
  skerryHere({ SKERRY_HOME: home, HOME: home, SKERRY_CORE_URL: url }, ['file', 'get', ...args]);

const plain = (text: string) => (response: ServerResponse) => void response.end(text);
const tagged = (text: string) => (response: ServerResponse) =>
  void response.setHeader('etag', `"${sha256Hex(text)}"`).end(text);

test('a node cannot send another file by naming it in its answer', async () => {
  await using home = await createTestDir();
  await using node = await sending(tagged(OTHER), messageWith(OTHER_HASH));
  for (const asked of [HASH, MESSAGE]) {
    const path = join(home.path, 'file');
    const { code, err } = await get(home.path, node.url, asked, '-o', path);
    assert.equal(code, 1, err);
    assert.match(err, /wrong bytes .*\(FILE_CORRUPT\)/);
    await assert.rejects(stat(path), { code: 'ENOENT' });
  }
});

test('a file is found by the message that keeps it, also where its bytes come from elsewhere without a name', async () => {
  await using home = await createTestDir();
  for (const send of [tagged(ASKED), plain(ASKED)]) {
    await using node = await sending(send, messageWith(HASH));
    for (const asked of [HASH, MESSAGE]) {
      const { out, err } = await get(home.path, node.url, asked);
      assert.deepEqual([out, err], [ASKED, '']);
    }
  }
});

/** "hello world\n" as `ipfs add` makes it: its block, and the CID of that. */
const CID = 'QmT78zSuBmuS4z925WZfrqQ1qHaJ56DQaTfyMUF7F8ff5o';
const BLOCK = Buffer.from('0a120802120c68656c6c6f20776f726c640a180c', 'hex');

test('a file of IPFS is checked by its CID, whether that is asked for or the message that keeps it', async () => {
  await using home = await createTestDir();
  const signed = JSON.stringify({ type: 'STORE', content: { item_hash: CID } });
  const message = itemHashOf('ETH', SENDER, signed);
  let block = BLOCK;
  await using node = await replying(({ pathname, searchParams }, response) => {
    if (pathname === `/api/v0/messages/${message}`) return { ...messageWith(signed), item_hash: message };
    const isBlock = pathname === `/api/v0/ipfs/${CID}` && searchParams.get('format') === 'raw';
    return isBlock || pathname === `${RAW}${message}`
      ? response.end(isBlock ? block : 'hello world\n')
      : undefined;
  });
  for (const asked of [CID, message]) {
    const { out, err } = await get(home.path, node.url, asked);
    assert.deepEqual([out, err], ['hello world\n', '']);
  }
  block = Buffer.concat([BLOCK.subarray(0, -2), Buffer.from([0x18, 0x0d])]);
  const { code, out, err } = await get(home.path, node.url, CID);
  assert.deepEqual([code, out], [1, ''], err);
  assert.match(err, /\(FILE_CORRUPT\)/);
  assert.match(
    (await get(home.path, node.url, 'Qm')).err,
    /64 hexadecimal digits, or a CID.*\(INVALID_HASH\)/,
  );
});

test('a download that goes on is not cut after an hour', async (t) => {
  await using home = await createTestDir();
  const limit = t.mock.method(AbortSignal, 'timeout');
  await using node = await sending(tagged(ASKED));
  assert.equal((await get(home.path, node.url, HASH)).out, ASKED);
  const longest = Math.max(...limit.mock.calls.map(({ arguments: [ms] }) => ms));
  assert.equal(longest, 24 * 3_600_000);
});

test('what a command left of a file when it was killed is named, with what removes it, and stays', async () => {
  await using home = await createTestDir();
  await using node = await sending(tagged(ASKED));
  const file = join(home.path, 'my file');
  const left = `${file}.${randomUUID()}.part`;
  for (const path of [left, `${file}.part`, join(home.path, `other.${randomUUID()}.part`)])
    await writeFile(path, 'half');
  const { code, err } = await get(home.path, node.url, HASH, '-o', file);
  assert.equal(code, 0, err);
  assert.equal(
    err,
    `${left} (4 B) is of an earlier command that was to write my file: unless that still runs, remove it: rm '${left}'\n`,
  );
  assert.equal(await readFile(left, 'utf8'), 'half');
});

test('a link goes on leading to its file, a pipe stays one, and a directory is refused before anything is asked', async () => {
  await using home = await createTestDir();
  await using node = await sending(tagged(ASKED));
  const at = (name: string) => join(home.path, name);
  await writeFile(at('real'), 'old');
  await symlink('real', at('link'));
  assert.equal((await get(home.path, node.url, HASH, '-o', at('link'))).code, 0);
  assert.ok((await lstat(at('link'))).isSymbolicLink());
  assert.equal(await readFile(at('real'), 'utf8'), ASKED);

  await promisify(execFile)('mkfifo', [at('pipe')]);
  await using reader = await open(at('pipe'), 'r+');
  assert.equal((await get(home.path, node.url, HASH, '-o', at('pipe'))).code, 0);
  assert.ok((await stat(at('pipe'))).isFIFO());
  const { buffer, bytesRead } = await reader.read();
  assert.equal(buffer.toString('utf8', 0, bytesRead), ASKED);

  await mkdir(at('folder'));
  const before = node.asked.length;
  const refused = await get(home.path, node.url, HASH, '-o', at('folder'));
  assert.deepEqual([refused.code, node.asked.length], [2, before]);
  assert.match(refused.err, /is a directory: name a file in it \(INVALID_PARAMETERS\)/);
});

test('of a file without an end no more is written than the disk has room for', async () => {
  const MIB = 1024 ** 2;
  let free = 200 * MIB;
  const note = keepRoom('/there', async () => free);
  for (let written = 0; written < 128 * MIB; written += MIB, free -= MIB) await note(MIB);
  await assert.rejects(
    (async () => {
      for (let written = 0; written < 128 * MIB; written += MIB, free -= MIB) await note(MIB);
    })(),
    { code: 'STORAGE_FULL' },
  );
  assert.ok(free > 40 * MIB, `${free} bytes are left`);
});

test('Ctrl-C leaves nothing of a file that was on its way, and what was there stays', async () => {
  await using home = await createTestDir();
  await using node = await sending((response) => void response.writeHead(200).write('half of it'));
  const folder = join(home.path, 'downloads');
  await mkdir(folder);
  await writeFile(join(folder, 'file'), 'old');
  const env = { ...bareEnvironment(), SKERRY_HOME: home.path, HOME: home.path, SKERRY_CORE_URL: node.url };
  const args = [BIN, 'file', 'get', HASH, '-o', join(folder, 'file')];
  const child = spawn(process.execPath, args, { env, stdio: 'ignore' });
  const ended = once(child, 'exit');
  await until('the file begins', async () => (await readdir(folder)).length === 2);
  child.kill('SIGINT');
  assert.deepEqual(await ended, [130, null]);
  assert.deepEqual(await readdir(folder), ['file']);
  assert.equal(await readFile(join(folder, 'file'), 'utf8'), 'old');
});
