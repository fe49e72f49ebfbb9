import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type MessageDraft, signMessage } from '@skerry/client';
import { createWrite, type Write } from '@skerry/database';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { verifySubmission } from '@skerry/protocol';
import { createEventLog } from '../../notify/events/log.ts';
import type { Schema } from '../../store/schema.ts';
import { MIGRATIONS, signers } from '../../testing/core.ts';
import { acceptMessage } from '../accept.ts';
import { Pipeline } from './pipeline.ts';
import { MAX_BATCH } from './queue.ts';

const TIMESTAMP = 1_700_000_000;
/** One batch, and enough of the next one. */
const CROWD = MAX_BATCH + 100;

function crowdOf(count: number) {
  return Array.from({ length: count }, (_, n) => {
    const draft = { type: 'POST', content: { type: 'note', content: n }, timestamp: TIMESTAMP };
    const { body } = signMessage({ ...draft, nonce: `${n}` } as MessageDraft, signers.alice);
    return acceptMessage(verifySubmission(Buffer.from(body), TIMESTAMP));
  });
}

/**
 * A pipeline that hears of the first commit when it is told to.
 * @param onBegin called before each transaction
 */
async function createHeld(
  stack: AsyncDisposableStack,
  isHeard: () => void = () => {},
  onBegin: () => void = () => {},
) {
  const database = stack.use(
    await createTestDatabase<Schema>({ migrations: MIGRATIONS, log: createLogger('core', 'fatal') }),
  );
  const commit = createWrite<Schema>(database.pool);
  const released = Promise.withResolvers<void>();
  let begun = 0;
  const write: Write<Schema> = async (body) => {
    onBegin();
    const isFirst = begun++ === 0;
    const result = await commit(body);
    if (!isFirst) return result;
    await released.promise;
    isHeard();
    return result;
  };
  const told: number[] = [];
  const pipeline = new Pipeline({
    ...{ db: database.kysely, write, events: createEventLog(database.kysely), schedulers: new Set<string>() },
    ...{ pendingHorizonMs: 1_000, now: Date.now },
    readContentFile: () => Promise.reject(new Error('no content is a file')),
    onCommitted: ({ moves }) => told.push(moves.length),
  });
  stack.defer(() => pipeline.close());
  // What may stand in line at the start has been looked at.
  await pipeline.idle();
  const countRows = async () =>
    (await database.pool.query<{ count: number }>('select count(*)::int as count from messages')).rows[0]!
      .count;
  return { pipeline, released, told, countRows };
}

describe('a crowd that waits', () => {
  test('has its turn while the commit before it is on its way; what is told keeps its order', async () => {
    await using stack = new AsyncDisposableStack();
    const { pipeline, released, told, countRows } = await createHeld(stack);
    const answered: number[] = [];
    const sent = crowdOf(CROWD).map(async (one, n) => {
      const { status } = await pipeline.submit(one);
      answered.push(n);
      return status;
    });
    await until('both batches are durable', async () => (await countRows()) === CROWD);
    assert.ok(pipeline.writingMs > 0);
    assert.deepEqual([answered, told], [[], []], 'the first is told of first');
    released.resolve();
    assert.deepEqual(new Set(await Promise.all(sent)), new Set(['processed']));
    assert.deepEqual(told, [MAX_BATCH, CROWD - MAX_BATCH]);
    assert.ok(answered.every((n, at) => n === at));
    assert.equal(pipeline.writingMs, 0);
  });

  test('is not held by one before it whose commit was lost: that is written again, and all are answered', async () => {
    await using stack = new AsyncDisposableStack();
    const { pipeline, released, told, countRows } = await createHeld(stack, () => {
      throw new Error('the answer was lost');
    });
    const sent = crowdOf(CROWD).map(async (one) => (await pipeline.submit(one)).status);
    await until('both batches are durable', async () => (await countRows()) === CROWD);
    released.resolve();
    assert.deepEqual(new Set(await Promise.all(sent)), new Set(['processed']));
    assert.deepEqual(told, [CROWD - MAX_BATCH], 'the first was there when it was written again');
    assert.equal(await countRows(), CROWD);
  });

  test('is written once the commit before it is, where it was not given its turn in time because of that', async () => {
    await using stack = new AsyncDisposableStack();
    let begun = 0;
    const { pipeline, released, told, countRows } = await createHeld(stack, undefined, () => {
      if (++begun === 2)
        throw Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' });
    });
    const sent = crowdOf(CROWD).map(async (one) => (await pipeline.submit(one)).status);
    await until('the first batch is durable', async () => (await countRows()) === MAX_BATCH);
    assert.equal(begun, 2);
    released.resolve();
    assert.deepEqual(new Set(await Promise.all(sent)), new Set(['processed']));
    assert.deepEqual(told, [MAX_BATCH, CROWD - MAX_BATCH]);
  });
});
