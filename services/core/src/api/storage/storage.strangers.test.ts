import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { CoreClient } from '@skerry/client';
import { sql } from 'kysely';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';

const T0 = 1_000_000_000;
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

  test('who asks for a file where messages are has few of its messages looked at, however many anybody made of it', async () => {
    const { db } = core.rooms;
    const hash = 'f11e'.repeat(16);
    // As so many messages would have made them; the oldest message has the last hash.
    const last = 'f'.repeat(64);
    await sql`insert into messages select (jsonb_populate_record(m, jsonb_build_object(
        'item_hash', case n when 1 then ${last}::text else lpad(n::text, 64, '0') end, 'time', ${T0}::float8 + n))).*
      from messages m, generate_series(1, 101) n where item_hash = ${message}`.execute(db);
    await sql`insert into file_pins (file_hash, message_hash, owner)
      select ${hash}::text, item_hash, owner from messages where "time" > ${T0}::float8 and "time" < ${T0}::float8 + 2000`.execute(
      db,
    );
    const { body } = await core.get(`/messages/${hash}`);
    assert.equal(body.details.messages.length, 10);
    assert.ok(!body.details.messages.includes(last));
    assert.equal((await core.get(`/storage/count/${hash}`)).body, 101);
  });
});
