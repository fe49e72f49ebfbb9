import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import fc from 'fast-check';
import { sql } from 'kysely';
import { createWrite } from '../db/copy.ts';
import { MIGRATIONS } from '../db/directory.ts';
import type { Schema } from '../db/schema.ts';
import { createTestDatabase, type TestDatabase } from '../db/testing.ts';
import { accept } from '../messages/accepted.ts';
import { totalMessages } from './count.ts';
import type { MessageFilter } from './filter.ts';
import { DAY_SECONDS } from './labels.ts';
import { listMessages, type MessageCursor, type MessagePage } from './messages.ts';
import { shapeOf } from './shape.ts';
import { numberShapes } from './shapes.ts';
import { withTimeLimit } from './time-limit.ts';
import { writeLists } from './write.ts';

/** Lists and totals over small random worlds are what a plain filter over all messages gives. */

const HEAVY_FROM = 4;
const DAYS = 4;
const WHOLE = 200;

interface Made {
  readonly itemHash: string;
  readonly sender: string;
  readonly owner: string;
  readonly type: string;
  readonly channel: string | null;
  readonly contentType: string | null;
  readonly tags: readonly string[];
  readonly content: Record<string, unknown>;
  readonly time: number;
  readonly leaves: boolean;
}

const SENDERS = ['0xa', '0xb', '0xc', '0xd'];
const CHANNELS = ['x', 'y', 'z'];
const TYPES = ['POST', 'AGGREGATE', 'STORE', 'FORGET'];
const CONTENT_TYPES = ['note', 'amend'];
const TAGS = ['t', 'u', 'v'];
const KEYS = ['.a', '.a.b', '.c', '.d'];
const CONTENTS = [{ a: 1 }, { a: { b: 1 } }, { c: 1, a: 1 }, { d: [1] }];

/** Some values are common and some rare, so that heavy labels meet light ones. */
const skewed = <T>(values: readonly T[]) =>
  fc.oneof(
    { weight: 3, arbitrary: fc.constant(values[0]!) },
    { weight: 2, arbitrary: fc.constantFrom(...values) },
  );

/** Moments of few days: equal times and the edges of days are common. */
const moment = fc
  .tuple(fc.nat(DAYS - 1), fc.constantFrom(0, 0, 1, 2.5, 40_000, DAY_SECONDS - 1))
  .map(([day, second]) => (19_000 + day) * DAY_SECONDS + second);

const made: fc.Arbitrary<Omit<Made, 'itemHash'>> = fc
  .record({
    sender: skewed(SENDERS),
    owner: fc.option(fc.constantFrom(...SENDERS), { freq: 4 }),
    type: skewed(TYPES),
    channel: fc.option(skewed(CHANNELS), { freq: 5 }),
    contentType: skewed(CONTENT_TYPES),
    tags: fc.array(skewed(TAGS), { maxLength: 3 }),
    content: skewed(CONTENTS),
    time: moment,
    leaves: fc.nat(9).map((roll) => roll === 0),
  })
  .map(({ owner, contentType, ...one }) => ({
    ...one,
    owner: owner ?? one.sender,
    contentType: one.type === 'POST' ? contentType : null,
  }));

/** In the order of arrival; hashes say nothing of it. */
const world = fc
  .tuple(fc.array(made, { minLength: 1, maxLength: 80 }), fc.integer({ min: 1, max: 40 }))
  .map(([all, batch]) => ({
    batch,
    messages: all.map(
      (one, index): Made => ({ ...one, itemHash: `${(index * 37) % 101}`.padStart(64, '0') }),
    ),
  }));

/** A filter is left out about so many times as often as it is given. */
const maybe = <T>(arbitrary: fc.Arbitrary<T>, out: number): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: out, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });
const some = <T>(values: readonly T[], out: number) =>
  maybe(fc.array(fc.constantFrom(...values), { minLength: 1, maxLength: 3 }), out);
const filters: fc.Arbitrary<MessageFilter> = fc.record({
  addresses: some([...SENDERS, 'nobody'], 2),
  channels: some([...CHANNELS, 'none'], 2),
  types: some(TYPES, 2),
  contentTypes: some([...CONTENT_TYPES, 'none'], 3),
  tags: some([...TAGS, 'none'], 2),
  keys: some([...KEYS, '.none'], 2),
  owners: some(SENDERS, 8),
  hashes: some(
    Array.from({ length: 30 }, (_, index) => `${index}`.padStart(64, '0')),
    8,
  ),
  from: maybe(moment, 3),
  to: maybe(moment, 3),
});

const has = <T>(values: readonly T[] | undefined, value: T | null) =>
  values === undefined || (value !== null && values.includes(value));
const hasOneOf = (values: readonly string[] | undefined, own: readonly string[]) =>
  values === undefined || own.some((one) => values.includes(one));

const fits = (filter: MessageFilter, one: Made): boolean =>
  has(filter.addresses, one.sender) &&
  has(filter.owners, one.owner) &&
  has(filter.channels, one.channel) &&
  has(filter.types, one.type) &&
  has(filter.contentTypes, one.contentType) &&
  has(filter.hashes, one.itemHash) &&
  hasOneOf(filter.tags, one.tags) &&
  hasOneOf(filter.keys, shapeOf(one.content)) &&
  (filter.from === undefined || one.time >= filter.from) &&
  (filter.to === undefined || one.time < filter.to);

const byTime = (sign: 1 | -1) => (a: Made, b: Made) =>
  sign * (a.time - b.time) || (a.itemHash < b.itemHash ? -1 : 1);

describe('lists', () => {
  let database: TestDatabase<Schema>;
  before(async () => {
    database = await createTestDatabase<Schema>({
      migrations: MIGRATIONS,
      log: createLogger('test', 'fatal'),
    });
  });
  after(() => database[Symbol.asyncDispose]());

  const acceptedOf = ({ owner, contentType, tags, ...one }: Made) =>
    accept(
      { ...one, form: 'envelope', chain: 'ETH', signature: '', sourceText: '' },
      { owner, contentType, tags },
    );

  /** One batch comes into the lists; some of it leaves them again. */
  async function write(batch: readonly Made[]): Promise<void> {
    await createWrite<Schema>(database.pool)(async (writer) => {
      const { trx } = writer;
      const shapes = await numberShapes(trx, batch);
      const listed = batch.map((one, index) => ({ accepted: acceptedOf(one), shape: shapes[index]! }));
      await trx
        .insertInto('messages')
        .values(
          batch.map(({ itemHash, content, contentType, leaves: _leaves, tags, ...one }, index) => ({
            ...one,
            item_hash: itemHash,
            content: JSON.stringify(content),
            content_type: contentType,
            tags: [...tags],
            shape: shapes[index]!,
            ...{ form: 'envelope' as const, chain: 'ETH', signature: '', status: 'processed' as const },
            ...{ reason: 'null', decide_by_ms: 0, settled_at_ms: 0 },
          })),
        )
        .execute();
      await writeLists(
        writer,
        listed.map((one) => ({ ...one, shown: true })),
        HEAVY_FROM,
      );
      const gone = listed.filter((_, index) => batch[index]!.leaves);
      if (gone.length === 0) return;
      const hashes = gone.map(({ accepted }) => accepted.message.itemHash);
      await trx
        .updateTable('messages')
        .set({ status: 'forgotten' })
        .where('item_hash', 'in', hashes)
        .execute();
      await writeLists(
        writer,
        gone.map((one) => ({ ...one, shown: false })),
        HEAVY_FROM,
      );
    });
  }

  async function fill({ messages, batch }: { messages: readonly Made[]; batch: number }): Promise<Made[]> {
    await sql`truncate messages, message_tags, totals`.execute(database.kysely);
    for (let from = 0; from < messages.length; from += batch) await write(messages.slice(from, from + batch));
    return messages.filter((one) => !one.leaves);
  }

  const hashesOf = async (filter: MessageFilter, page: MessagePage, sortedRowsMax?: number) =>
    (await listMessages(database.kysely, filter, page, sortedRowsMax)).map((row) => row.item_hash);

  async function walk(filter: MessageFilter, limit: number, oldestFirst: boolean): Promise<string[]> {
    const found: string[] = [];
    let after: MessageCursor | undefined;
    for (let page = 0; page < WHOLE; page++) {
      const rows = await listMessages(database.kysely, filter, { limit, offset: 0, after, oldestFirst });
      found.push(...rows.map((row) => row.item_hash));
      const last = rows.at(-1);
      if (!last) break;
      after = { time: last.time, itemHash: last.item_hash };
    }
    return found;
  }

  async function check(listed: readonly Made[], filter: MessageFilter, limit: number): Promise<void> {
    const fitting = listed.filter((one) => fits(filter, one));
    for (const oldestFirst of [false, true]) {
      const expected = fitting.toSorted(byTime(oldestFirst ? 1 : -1)).map((one) => one.itemHash);
      const page = { limit: WHOLE, offset: 0, oldestFirst };
      assert.deepEqual(await hashesOf(filter, page), expected);
      const second = { limit, offset: limit, oldestFirst };
      for (const sortedRowsMax of [0, Infinity])
        assert.deepEqual(await hashesOf(filter, second, sortedRowsMax), expected.slice(limit, 2 * limit));
      assert.deepEqual(await walk(filter, limit, oldestFirst), expected);
    }
    assert.equal(await totalMessages(database.kysely, filter), fitting.length, 'the total');
  }

  test('any filter, by pages and by cursors, in both orders, with its total', async () => {
    await fc.assert(
      fc.asyncProperty(world, fc.array(filters, { minLength: 8, maxLength: 8 }), async (made, asked) => {
        const listed = await fill(made);
        for (const filter of asked) await check(listed, filter, 7);
      }),
      { numRuns: 15 },
    );
  });

  test('a list that would take too long is broken off, and the connection goes on as before', async () => {
    const { kysely } = database;
    const limitOf = async (db: typeof kysely) =>
      (await sql<{ statement_timeout: string }>`show statement_timeout`.execute(db)).rows[0]!
        .statement_timeout;
    const before = await limitOf(kysely);
    const sleep = withTimeLimit(kysely, (on) => sql`select pg_sleep(60)`.execute(on), 20);
    await assert.rejects(sleep, { code: 'LIST_TOO_COSTLY' });
    assert.equal(await withTimeLimit(kysely, limitOf, 20_000), '20s');
    assert.equal(await limitOf(kysely), before);
  });

  test('one and two filters, each value that there is', async () => {
    await fc.assert(
      fc.asyncProperty(world, async (made) => {
        const listed = await fill(made);
        const alone: MessageFilter[] = [
          {},
          ...SENDERS.map((one) => ({ addresses: [one] })),
          ...TAGS.map((one) => ({ tags: [one] })),
          ...KEYS.map((one) => ({ keys: [one] })),
          { channels: ['x'] },
          { types: ['POST'] },
          { contentTypes: ['note'] },
          { from: 19_001 * DAY_SECONDS },
          { from: 19_000 * DAY_SECONDS + 1, to: 19_003 * DAY_SECONDS + 5 },
        ];
        for (const [index, one] of alone.entries())
          for (const other of alone.slice(index)) {
            const both = { ...one, ...other };
            const expected = listed.filter((message) => fits(both, message)).length;
            assert.equal(await totalMessages(database.kysely, both), expected, JSON.stringify(both));
          }
      }),
      { numRuns: 8 },
    );
  });
});
