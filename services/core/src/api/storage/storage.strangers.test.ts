import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { CoreClient } from '@skerry/client';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';

const BYTES = Buffer.from('what a stranger stored');
const FILE_HASH = createHash('sha256').update(BYTES).digest('hex');

describe('the hashes of a stored file', () => {
  let core: TestCore;
  let message: string;
  before(async () => {
    core = await createTestCore();
    const client = new CoreClient({ url: await core.listen(), signer: signers.alice });
    const stored = await client.storeFile(new Blob([BYTES]), 'a.txt', FILE_HASH);
    assert.deepEqual(Object.keys(stored).sort(), ['file_hash', 'item_hash', 'status']);
    assert.equal(stored.file_hash, FILE_HASH);
    message = stored.item_hash;
  });
  after(() => core[Symbol.asyncDispose]());

  test('S4: item_hash is the hash of the STORE message', async () => {
    const { status, body } = await core.get(`/messages/${message}`);
    assert.deepEqual([status, body.item_hash, body.type], [200, message, 'STORE']);
    assert.equal(body.content.item_hash, FILE_HASH);
  });

  test('S4: /storage takes the hash of the file or of its message', async () => {
    for (const hash of [FILE_HASH, message]) {
      for (const path of [`/storage/${hash}`, `/storage/raw/${hash}`]) {
        const { status, headers, body } = await core.get(path);
        assert.deepEqual([status, body, headers.etag], [200, BYTES, `"${FILE_HASH}"`], path);
      }
      const { body: metadata } = await core.get(`/storage/metadata/${hash}`);
      assert.deepEqual([metadata.file_hash, metadata.size], [FILE_HASH, BYTES.length]);
      assert.equal((await core.get(`/storage/count/${hash}`)).body, 1);
    }
    const missing = await core.get(`/storage/${'0'.repeat(64)}`);
    assert.deepEqual([missing.status, missing.body.code], [404, 'FILE_NOT_FOUND']);
  });

  test('S4: who asks for a file where messages are is told which message stores it', async () => {
    for (const path of ['', '/status', '/content']) {
      const { status, body } = await core.get(`/messages/${FILE_HASH}${path}`);
      assert.deepEqual([status, body.code], [404, 'MESSAGE_NOT_FOUND']);
      assert.match(body.error, new RegExp(message));
      assert.deepEqual(body.details, { file_hash: FILE_HASH, messages: [message] });
    }
  });
});
