import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { TimedPage } from '@skerry/database';
import { createWrite } from '@skerry/database';
import { createTestDatabase, type TestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import fc from 'fast-check';
import { sql } from 'kysely';
import { acceptAs } from '../../intake/accepted.ts';
import { MIGRATIONS } from '../../store/directory.ts';
import type { Schema } from '../../store/schema.ts';
import { totalMessages } from './count.ts';
import { DAY_SECONDS } from './labels.ts';
import { columnsFor, listFitting, matcherOf, type Row } from './matcher.ts';
import { listMessages } from './messages.ts';
import { INDEXES, type MessageFilter, PROPERTY_NAMES, type PropertyName, propertyOf } from './properties.ts';
import { shapeOf } from './shape.ts';
import { numberShapes, shapeKeyOf } from './shapes.ts';
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
  readonly chain: string;
  readonly type: string;
  readonly channel: string | null;
  readonly contentType: string | null;
  readonly subject: string | null;
  readonly tags: readonly string[];
  readonly content: Record<string, unknown>;
  readonly time: number;
  readonly leaves: boolean;
}

const SENDERS = ['0xa', '0xb', '0xc', '0xd'];
const CHAINS = ['ETH', 'SOL'];
const SUBJECTS = ['r', 's'];
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
    chain: skewed(CHAINS),
    type: skewed(TYPES),
    channel: fc.option(skewed(CHANNELS), { freq: 5 }),
    contentType: skewed(CONTENT_TYPES),
    subject: fc.option(skewed(SUBJECTS), { freq: 2 }),
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

const some = <T>(values: readonly T[]) =>
  fc.array(fc.constantFrom(...values), { minLength: 1, maxLength: 3 });
const HASHES = Array.from({ length: 30 }, (_, index) => `${index}`.padStart(64, '0'));
const has = <T>(values: readonly T[], value: T | null) => value !== null && values.includes(value);
const hasOneOf = (values: readonly string[], own: readonly string[]) =>
  own.some((one) => values.includes(one));

interface Sample<V> {
  readonly values: fc.Arbitrary<V>;
  /** A filter is left out about so many times as often as it is given. */
  readonly out: number;
  readonly fits: (value: V, one: Made) => boolean;
}
type Samples = {
  readonly [N in PropertyName]: Sample<NonNullable<MessageFilter[N]>>;
};

/** What each filter means, said without SQL. */
const samplesOf = (shapes: ReadonlyMap<string, number>): Samples => ({
  addresses: { values: some([...SENDERS, 'nobody']), out: 2, fits: (v, one) => has(v, one.sender) },
  owners: { values: some(SENDERS), out: 8, fits: (v, one) => has(v, one.owner) },
  types: { values: some(TYPES), out: 2, fits: (v, one) => has(v, one.type) },
  channels: { values: some([...CHANNELS, 'none']), out: 2, fits: (v, one) => has(v, one.channel) },
  chains: { values: some([...CHAINS, 'none']), out: 8, fits: (v, one) => has(v, one.chain) },
  contentTypes: {
    values: some([...CONTENT_TYPES, 'none']),
    out: 3,
    fits: (v, one) => has(v, one.contentType),
  },
  subjects: { values: some([...SUBJECTS, 'none']), out: 8, fits: (v, one) => has(v, one.subject) },
  tags: { values: some([...TAGS, 'none']), out: 2, fits: (v, one) => hasOneOf(v, one.tags) },
  shapes: {
    values: some([...shapes.values()]),
    out: 8,
    fits: (v, one) => has(v, shapes.get(shapeKeyOf(one))!),
  },
  keys: { values: some([...KEYS, '.none']), out: 2, fits: (v, one) => hasOneOf(v, shapeOf(one.content)) },
  hashes: { values: some(HASHES), out: 8, fits: (v, one) => has(v, one.itemHash) },
  from: { values: moment, out: 3, fits: (v, one) => one.time >= v },
  to: { values: moment, out: 3, fits: (v, one) => one.time < v },
});

/** Every value that there may be of each property alone. */
const valuesOf = (samples: Samples) =>
  fc.record(mapSamples(samples, ({ values }) => values)) as fc.Arbitrary<MessageFilter>;
const filtersOf = (samples: Samples) =>
  fc.record(
    mapSamples(samples, ({ values, out }) =>
      fc.oneof({ weight: out, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: values }),
    ),
  ) as fc.Arbitrary<MessageFilter>;
const mapSamples = <T>(samples: Samples, map: (sample: Pick<Sample<unknown>, 'values' | 'out'>) => T) =>
  Object.fromEntries(PROPERTY_NAMES.map((name) => [name, map(samples[name])])) as Record<PropertyName, T>;

const fitsOne = <N extends PropertyName>(samples: Samples, name: N, filter: MessageFilter, one: Made) => {
  const value = filter[name];
  return value === undefined || (samples[name] as Sample<typeof value>).fits(value, one);
};
const fits = (samples: Samples, filter: MessageFilter, one: Made): boolean =>
  PROPERTY_NAMES.every((name) => fitsOne(samples, name, filter, one));

const byTime = (sign: 1 | -1) => (a: Made, b: Made) =>
  sign * (a.time - b.time) || (a.itemHash < b.itemHash ? -1 : 1);

describe('lists', () => {
  let database: TestDatabase<Schema>;
  let samples: Samples;
  before(async () => {
    database = await createTestDatabase<Schema>({
      migrations: MIGRATIONS,
      log: createLogger('test', 'fatal'),
    });
    const shaped = TYPES.flatMap((type) =>
      (type === 'POST' ? CONTENT_TYPES : [null]).flatMap((contentType) =>
        CONTENTS.map((content) => ({ type, contentType, content })),
      ),
    );
    const numbers = await database.kysely.transaction().execute((trx) => numberShapes(trx, shaped));
    samples = samplesOf(new Map(shaped.map((one, index) => [shapeKeyOf(one), numbers[index]!])));
  });
  after(() => database[Symbol.asyncDispose]());

  const acceptedOf = ({ owner, contentType, subject, tags, ...one }: Made) =>
    acceptAs(
      { ...one, form: 'envelope', signature: '', sourceText: '' },
      { owner, contentType, subject, tags },
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
            ...{ form: 'envelope' as const, signature: '', status: 'processed' as const },
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

  const hashesOf = async (filter: MessageFilter, page: TimedPage, sortedRowsMax?: number) =>
    (await listMessages(database.kysely, filter, page, sortedRowsMax)).map((row) => row.item_hash);

  async function walk(filter: MessageFilter, limit: number, oldestFirst: boolean): Promise<string[]> {
    const found: string[] = [];
    let after: TimedPage['after'];
    for (let page = 0; page < WHOLE; page++) {
      const rows = await listMessages(database.kysely, filter, { limit, offset: 0, after, oldestFirst });
      found.push(...rows.map((row) => row.item_hash));
      const last = rows.at(-1);
      if (!last) break;
      after = { time: last.time, itemHash: last.item_hash };
    }
    return found;
  }

  /** What a filter gives of messages that come one by one. */
  async function matchedBy(filter: MessageFilter): Promise<string[]> {
    const { made, rest, fits: fitsRow } = matcherOf(filter);
    const columns = sql.join([sql`m.*`, ...columnsFor(made)]);
    const { rows } = await sql<Row>`select ${columns} from messages m where m.status = 'processed'`.execute(
      database.kysely,
    );
    const hashes = rows.filter(fitsRow).map((row) => row.item_hash);
    if (!rest) return hashes;
    const fitting = await listFitting(database.kysely, rest, hashes);
    return hashes.filter((hash) => fitting.has(hash));
  }

  async function check(listed: readonly Made[], filter: MessageFilter, limit: number): Promise<void> {
    const fitting = listed.filter((one) => fits(samples, filter, one));
    assert.deepEqual((await matchedBy(filter)).sort(), fitting.map((one) => one.itemHash).sort());
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
    const asked = fc.array(filtersOf(samples), { minLength: 8, maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(world, asked, async (made, filters) => {
        const listed = await fill(made);
        for (const filter of filters) await check(listed, filter, 7);
      }),
      { numRuns: 15 },
    );
  });

  test('every index that lists name is there, with the columns that they count on', async () => {
    const { rows } = await sql<{ name: string; columns: string[]; terms: string }>`
      select c.relname as name, array_agg(a.attname::text order by a.attnum) as columns,
        pg_get_expr(i.indpred, i.indrelid) as terms
      from pg_index i join pg_class c on c.oid = i.indexrelid join pg_attribute a on a.attrelid = c.oid
      where i.indpred is not null group by c.relname, i.indpred, i.indrelid`.execute(database.kysely);
    for (const { name, on, isShared } of INDEXES) {
      const { columns, terms } = rows.find((row) => row.name === name)!;
      const own = on.map((property) => (property === 'tags' ? 'tag' : propertyOf(property).column));
      assert.deepEqual(columns, [...own, 'time', 'item_hash'], name);
      assert.equal(terms.includes(`'${name}'`), !isShared, `${name} says its name`);
    }
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

  test('each property alone, and with each other', async () => {
    await fc.assert(
      fc.asyncProperty(world, valuesOf(samples), async (made, values) => {
        const listed = await fill(made);
        for (const [index, one] of PROPERTY_NAMES.entries())
          for (const other of PROPERTY_NAMES.slice(index)) {
            const filter = { [one]: values[one], [other]: values[other] };
            const expected = listed.filter((message) => fits(samples, filter, message)).sort(byTime(-1));
            const told = JSON.stringify(filter);
            assert.deepEqual(
              await hashesOf(filter, { limit: WHOLE, offset: 0 }),
              expected.map(({ itemHash }) => itemHash),
              told,
            );
            assert.equal(await totalMessages(database.kysely, filter), expected.length, told);
          }
      }),
      { numRuns: 5 },
    );
  });
});
