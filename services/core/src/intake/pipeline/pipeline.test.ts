import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, test } from 'node:test';
import { type MessageDraft, signMessage } from '@skerry/client';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { sha256Hex, verifySubmission } from '@skerry/protocol';
import type { KyselyPlugin } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { SCHEMA_VERSION } from '../../store/schema-version.ts';
import { lockWrites } from '../../store/write-lock.ts';
import { createTestCore, MIGRATIONS, signers } from '../../testing/core.ts';
import { isAnyWaiting } from '../../testing/waiting.ts';
import { acceptMessage } from '../accept.ts';

const { alice } = signers;
const TIMESTAMP = 1_700_000_000;

const post = (nonce: number) => {
  const draft = { type: 'POST', content: { type: 'note', content: nonce } };
  const { body } = signMessage({ ...draft, timestamp: TIMESTAMP, nonce: `${nonce}` } as MessageDraft, alice);
  return acceptMessage(verifySubmission(Buffer.from(body), TIMESTAMP));
};

/** Holds back what the next reading of the reconsider queue found. */
class HeldReading implements KyselyPlugin {
  readonly begun = Promise.withResolvers<void>();
  readonly released = Promise.withResolvers<void>();
  #isArmed = false;
  #queryId: unknown;

  arm(): void {
    this.#isArmed = true;
  }

  transformQuery({ node, queryId }: Parameters<KyselyPlugin['transformQuery']>[0]) {
    if (
      this.#isArmed &&
      node.kind === 'SelectQueryNode' &&
      JSON.stringify(node.from).includes('reconsider')
    ) {
      this.#isArmed = false;
      this.#queryId = queryId;
    }
    return node;
  }

  async transformResult({ result, queryId }: Parameters<KyselyPlugin['transformResult']>[0]) {
    if (queryId === this.#queryId) {
      this.begun.resolve();
      await this.released.promise;
    }
    return result;
  }
}

describe('pipeline', () => {
  test('what a peer says of a message counts, also where a client sends the message in the same batch', async () => {
    await using core = await createTestCore();
    const { db, pipeline, intake } = core.rooms;
    const hash = '5e'.repeat(32);
    const saidBy = (channel: string, seconds: number) => {
      const fields = { address: alice.address, signature: alice.sign(hash), channel, tags: [] };
      const upload = intake.client.readUpload(fields, { hash, sizeBytes: 1, contentType: 'text/plain' });
      return {
        ...upload,
        message: { ...upload.message, time: TIMESTAMP, notedMs: (TIMESTAMP + seconds) * 1000 },
      };
    };
    const isKept = async (channel: string, seconds: number) => {
      const columns = ['channel', 'noted_ms'] as const;
      const rows = await db.selectFrom('messages').select(columns).execute();
      assert.deepEqual(rows, [{ channel, noted_ms: (TIMESTAMP + seconds) * 1000 }]);
    };
    const clients = () => pipeline.submit(saidBy('a', 20_000), { weight: 'yields' });
    await pipeline.submit(saidBy('a', 9_000));
    await Promise.all([clients(), pipeline.submit(saidBy('a', 8_000))]);
    await isKept('a', 8_000);
    await Promise.all([clients(), pipeline.submit(saidBy('b', 7_000))]);
    await isKept('b', 7_000);
    await Promise.all([clients(), pipeline.submit(saidBy('a', 10_000), { weight: 'overrules' })]);
    await isKept('a', 10_000);
  });

  test('older code writes nothing beside a migration of a newer release, nor after it', async () => {
    await using core = await createTestCore();
    const { pipeline, db } = core.rooms;
    const countRows = async () => (await db.selectFrom('messages').select('item_hash').execute()).length;
    await pipeline.submit(post(1));
    const refused = { code: 'DATABASE_INCOMPATIBLE' };
    let beside: Promise<void> | undefined;
    await db.transaction().execute(async (migration) => {
      await migration
        .updateTable('event_counter')
        .set({ schema_version: SCHEMA_VERSION + 1 })
        .execute();
      beside = assert.rejects(pipeline.submit(post(2)), refused);
      await until('it waits for the migration', () => isAnyWaiting(db));
    });
    await beside;
    await assert.rejects(pipeline.submit(post(3)), refused);
    assert.equal(await countRows(), 1);
  });

  test('what changed while a batch is written is told after it: what the batch left hanging on it is decided again', async () => {
    await using core = await createTestCore();
    const { pipeline, db } = core.rooms;
    const hash = sha256Hex('a file');
    const key = `file:${hash}`;
    const store = { type: 'STORE', content: { item_type: 'storage', item_hash: hash } };
    const { body, itemHash } = signMessage({ ...store, timestamp: TIMESTAMP } as MessageDraft, alice);
    assert.equal((await core.post('/messages', body)).status, 202);
    // As if it were still being written, by a batch that has not seen the file.
    await db.deleteFrom('dependencies').execute();
    await db.insertInto('files').values({ hash, size_bytes: 1, content_type: 'text/plain' }).execute();
    let touched: Promise<void> | undefined;
    let isOver = false;
    await db.transaction().execute(async (batch) => {
      await lockWrites(batch);
      touched = pipeline.touch([key]).finally(() => {
        isOver = true;
      });
      await until('it waits, or has looked', async () => isOver || (await isAnyWaiting(db)));
      await batch.insertInto('dependencies').values({ key, item_hash: itemHash }).execute();
    });
    await touched;
    await pipeline.idle();
    assert.equal((await core.get(`/messages/${itemHash}/status`)).body.status, 'processed');
  });

  test('what is decided again leaves the line once nobody else writes: whoever puts it in line meanwhile waits for nobody', async () => {
    await using core = await createTestCore();
    const { pipeline, db } = core.rooms;
    const one = post(1);
    await pipeline.submit(one);
    await db.insertInto('reconsider').values({ item_hash: one.message.itemHash }).execute();
    await db.transaction().execute(async (writer) => {
      await lockWrites(writer);
      pipeline.resume();
      await until('it waits', () => isAnyWaiting(db));
      // Refused where the line holds the row already: the two would wait for each other.
      await writer.selectFrom('reconsider').selectAll().forUpdate().noWait().execute();
    });
    await pipeline.idle();
    assert.deepEqual(await db.selectFrom('reconsider').selectAll().execute(), []);
  });

  test('what is put in line while the line is read is decided, too', async () => {
    const log = createLogger('core', 'fatal');
    await using database = await createTestDatabase<Schema>({ migrations: MIGRATIONS, log });
    const held = new HeldReading();
    const { pool, kysely } = database;
    await using core = await createTestCore({
      database: { pool, kysely: kysely.withPlugin(held), [Symbol.asyncDispose]: async () => {} },
    });
    const { pipeline, files } = core.rooms;
    const text = 'a file that comes while the line is read';
    const store = { type: 'STORE', content: { item_type: 'storage', item_hash: sha256Hex(text) } };
    const { body, itemHash } = signMessage({ ...store, timestamp: TIMESTAMP } as MessageDraft, alice);
    assert.equal((await core.post('/messages', body)).status, 202);
    await pipeline.idle();

    held.arm();
    pipeline.resume();
    await held.begun.promise;
    const blob = await core.blobs.receive(Readable.from([Buffer.from(text)]), 10_000);
    await files.storeUnpinned(blob, 'text/plain');
    await blob.discard();
    held.released.resolve();
    await pipeline.idle();
    assert.equal((await core.get(`/messages/${itemHash}/status`)).body.status, 'processed');
  });

  test('a message that comes as the last one is answered is written, however close', {
    timeout: 60_000,
  }, async () => {
    await using core = await createTestCore();
    const { pipeline } = core.rooms;
    for (let steps = 0; steps < 20; steps++) {
      await pipeline.submit(post(2 * steps));
      for (let step = 0; step < steps; step++) await undefined;
      const { status } = await pipeline.submit(post(2 * steps + 1));
      assert.equal(status, 'processed', `${steps} steps later`);
    }
  });
});
