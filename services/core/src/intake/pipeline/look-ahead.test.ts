import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type MessageDraft, signMessage } from '@skerry/client';
import { createWrite, type Write } from '@skerry/database';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { verifySubmission } from '@skerry/protocol';
import { createEventLog } from '../../notify/events/log.ts';
import type { Schema } from '../../store/schema.ts';
import { isOutOfTurn } from '../../store/write-lock.ts';
import { MIGRATIONS, signers } from '../../testing/core.ts';
import { acceptMessage } from '../accept.ts';
import { writeBatch } from './apply-batch.ts';
import type { Left } from './look-ahead.ts';
import { Pipeline } from './pipeline.ts';
import { MAX_BATCH } from './queue.ts';

const TIMESTAMP = 1_700_000_000;
/** Enough to go behind a batch. */
const FEW = 100;
const { alice, bob } = signers;

const accept = (draft: MessageDraft, signer = alice) =>
  acceptMessage(verifySubmission(Buffer.from(signMessage(draft, signer).body), TIMESTAMP));
const post = (n: number, signer = alice) =>
  accept(
    { type: 'POST', content: { type: 'note', content: n }, timestamp: TIMESTAMP, nonce: `${n}` },
    signer,
  );
const postsOf = (count: number, from = 0) => Array.from({ length: count }, (_, n) => post(from + n));

const openDatabase = async (stack: AsyncDisposableStack) =>
  stack.use(await createTestDatabase<Schema>({ migrations: MIGRATIONS, log: createLogger('core', 'fatal') }));
type Database = Awaited<ReturnType<typeof openDatabase>>;

async function openPipeline(stack: AsyncDisposableStack, { kysely: db }: Database, write: Write<Schema>) {
  const pipeline = new Pipeline({
    ...{ db, write, events: createEventLog(db), schedulers: new Set<string>() },
    ...{ pendingHorizonMs: 1_000, now: Date.now },
    readContentFile: () => Promise.reject(new Error('no content is a file')),
  });
  stack.defer(() => pipeline.close());
  // What may stand in line at the start has been looked at.
  await pipeline.idle();
  return pipeline;
}

const readNumbers = async ({ pool }: Database) =>
  (await pool.query<{ seq: string }>('select seq from events order by seq')).rows.map(({ seq }) =>
    Number(seq),
  );
const upTo = (count: number) => Array.from({ length: count }, (_, n) => n + 1);

describe('a batch that is begun before its turn', () => {
  test('is refused whole, with its rows, where all stands otherwise than the batch before was to leave it', async () => {
    await using stack = new AsyncDisposableStack();
    const database = await openDatabase(stack);
    const write = createWrite<Schema>(database.pool);
    const left = Promise.withResolvers<Left>();
    const candidates = postsOf(FEW).map((accepted) => ({ accepted, decideByMs: 0 }));
    const [first, ...rest] = candidates;
    await writeBatch(write, [first!], new Set(), 0, { onCommitting: left.resolve });
    const behind = await left.promise;
    const wrong: Partial<Left>[] = [
      { lastSeq: behind.lastSeq + 1 },
      { timeline: 'another' },
      { digest: { ...behind.digest, count: 7 } },
      { digest: { ...behind.digest, digest: '0'.repeat(64) } },
    ];
    for (const one of wrong) {
      const writing = writeBatch(write, rest, new Set(), 0, { behind: { ...behind, ...one } });
      await assert.rejects(writing, isOutOfTurn, JSON.stringify(one));
    }
    assert.deepEqual(await readNumbers(database), [1]);
    const { verdicts } = await writeBatch(write, rest, new Set(), 0, { behind });
    assert.deepEqual(new Set([...verdicts.values()].map(({ status }) => status)), new Set(['processed']));
    assert.deepEqual(await readNumbers(database), upTo(FEW));
  });

  test('is written again where another process wrote in between, and those behind it wait for their turn', async () => {
    await using stack = new AsyncDisposableStack();
    const database = await openDatabase(stack);
    const commit = createWrite<Schema>(database.pool);
    const other = await openPipeline(stack, database, commit);
    const written = Promise.withResolvers<unknown>();
    let begun = 0;
    const pipeline = await openPipeline(stack, database, async (body) => {
      const turn = ++begun;
      if (turn === 2) await written.promise.then(() => other.submit(post(0, bob)));
      const writing = commit(body);
      if (turn === 1) written.resolve(writing);
      return writing;
    });
    const sent = postsOf(MAX_BATCH + FEW).map(async (one) => (await pipeline.submit(one)).status);
    assert.deepEqual(new Set(await Promise.all(sent)), new Set(['processed']));
    assert.equal(begun, 3, 'it was written once more, whole');
    assert.deepEqual(await readNumbers(database), upTo(MAX_BATCH + FEW + 1));
  });

  test('has the verdicts that it has in its turn where its messages speak of the batch before, or are forgotten by it', async () => {
    await using stack = new AsyncDisposableStack();
    const database = await openDatabase(stack);
    const pipeline = await openPipeline(stack, database, createWrite<Schema>(database.pool));
    const [first, late] = [post(0), post(MAX_BATCH)];
    const { itemHash: ref } = first.message;
    const hashes = [ref, late.message.itemHash];
    const forget = accept({ type: 'FORGET', content: { hashes }, timestamp: TIMESTAMP, nonce: 'f' });
    const amend = accept({
      ...{ type: 'POST', content: { type: 'amend', content: 'new', ref: post(1).message.itemHash } },
      ...{ timestamp: TIMESTAMP, nonce: 'a' },
    });
    const before = [first, ...postsOf(MAX_BATCH - 2, 1), forget];
    const behind = [late, amend, ...postsOf(FEW, MAX_BATCH + 1)];
    await Promise.all([...before, ...behind].map((one) => pipeline.submit(one)));
    await pipeline.idle();
    const { rows } = await database.pool.query<{ item_hash: string; status: string }>(
      "select item_hash, status from messages where status <> 'processed'",
    );
    assert.deepEqual(
      new Map(rows.map((row) => [row.item_hash, row.status])),
      new Map(hashes.map((hash) => [hash, 'forgotten'])),
    );
  });
});
