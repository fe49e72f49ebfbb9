import assert from 'node:assert/strict';
import { appendFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { PARTS_FROM_BYTES } from '@skerry/client/upload';
import { sha256Hex } from '@skerry/protocol';
import { skerryHere } from '../testing/here.ts';
import { replying } from '../testing/replying.ts';
import { createTestDir } from '../testing/run.ts';

const put = (home: string, url: string, path: string, input?: Uint8Array) =>
  skerryHere(
    { SKERRY_HOME: home, HOME: home, SKERRY_CORE_URL: url, SKERRY_KEY: 'default' },
    ['file', 'put', path, '--json'],
    input,
  );

async function withKey() {
  const home = await createTestDir();
  const made = await skerryHere({ SKERRY_HOME: home.path, HOME: home.path }, ['key', 'new']);
  assert.equal(made.code, 0, made.err);
  return home;
}

test('a file that grows while it is sent is told so at once, and not that the node is to be asked again', async () => {
  await using home = await withKey();
  const path = join(home.path, 'log');
  await writeFile(path, Buffer.alloc(PARTS_FROM_BYTES, 'a'));
  await using node = await replying((url, response) => {
    if (url.pathname.includes('/uploads/') && response.req.method === 'GET') {
      const size = Number(url.searchParams.get('size'));
      void appendFile(path, 'one more line\n').then(() =>
        response
          .setHeader('content-type', 'application/json')
          .end(JSON.stringify({ file_hash: '', size, received: 0, item_hash: null })),
      );
      return response;
    }
    response.statusCode = 404;
    return { status: 'error', code: 'MESSAGE_NOT_FOUND', error: 'there is none' };
  });
  const { err, code } = await put(home.path, node.url, path);
  assert.equal(code, 2, err);
  const { code: told, error } = JSON.parse(err) as { code: string; error: string };
  assert.equal(told, 'INVALID_PARAMETERS');
  assert.match(error, /the file was changed/);
});

test('what is hashed of a file is what is sent of it, also where the system says that it has no bytes', async () => {
  await using home = await withKey();
  const sent: string[] = [];
  await using node = await replying((_, response) => {
    const chunks: Buffer[] = [];
    response.req
      .on('data', (chunk: Buffer) => chunks.push(chunk))
      .on('end', () => {
        sent.push(Buffer.concat(chunks).toString());
        response.statusCode = 403;
        response.end(JSON.stringify({ status: 'error', code: 'OWNER_MISMATCH', error: 'seen enough' }));
      });
    return response;
  });
  await put(home.path, node.url, '/proc/version');
  assert.match(sent.join(), /Linux version/);
  assert.ok(!sent.join().includes(sha256Hex('')));
  sent.length = 0;
  await put(home.path, node.url, '-', Buffer.from('from a pipe'));
  assert.match(sent.join(), /from a pipe/);
});

test('more than memory should keep of standard input is refused', async () => {
  await using home = await withKey();
  const { err, code } = await put(home.path, 'http://127.0.0.1:1', '-', Buffer.alloc(64 * 1024 * 1024 + 1));
  assert.equal(code, 2);
  assert.match(err, /more than 64\.0 MiB .*write them to a file/);
});

test('a file that is not there is told in words', async () => {
  await using home = await withKey();
  const { err, code } = await put(home.path, 'http://127.0.0.1:1', join(home.path, 'nothing'));
  assert.equal(code, 2);
  assert.match(err, /there is no file .*nothing/);
});
