import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { type AppError, sha256Hex } from '@skerry/protocol';
import { copyVerified } from './get.ts';

const BYTES = Buffer.from('the bytes of a file');
const HASH = sha256Hex(BYTES);

test('passes the bytes on and counts them', async () => {
  const written: Uint8Array[] = [];
  const body = Readable.from([BYTES.subarray(0, 3), BYTES.subarray(3)]);
  const bytes = await copyVerified(body, HASH, async (chunk) => {
    written.push(chunk);
  });
  assert.equal(bytes, BYTES.length);
  assert.deepEqual(Buffer.concat(written), BYTES);
});

test('other bytes, fewer bytes, no bytes: not the file', async () => {
  for (const body of [[Buffer.from('other')], [BYTES.subarray(1)], []]) {
    await assert.rejects(
      copyVerified(Readable.from(body), HASH, async () => {}),
      { code: 'FILE_CORRUPT' },
    );
  }
});

test('a connection that breaks is not a corrupt file', async () => {
  async function* broken() {
    yield BYTES;
    throw new TypeError('terminated');
  }
  await assert.rejects(
    copyVerified(broken(), HASH, async () => {}),
    (error: AppError) => {
      assert.equal(error.code, 'UPSTREAM_UNAVAILABLE');
      assert.match(error.message, /after 19 B/);
      return true;
    },
  );
});

test('a failure to write is its own', async () => {
  const full = () => Promise.reject(new Error('no space'));
  await assert.rejects(copyVerified(Readable.from([BYTES]), HASH, full), /no space/);
});
