import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { TimedPage } from '@skerry/database';
import { createWrite } from '@skerry/database';
import { createTestDatabase, type TestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import fc from 'fast-check';
import { sql, type Transaction } from 'kysely';
import { acceptAs } from '../../intake/accepted.ts';
import { MIGRATIONS } from '../../store/directory.ts';
import type { Schema } from '../../store/schema.ts';
import type { ConfirmedPage } from '../messages/first-confirmation.ts';
import { listByConfirmation } from './by-confirmation.ts';
import { totalMessages } from './count.ts';
import { labelOf, TAG_LABEL } from './labels.ts';
import { columnsFor, matcherOf, type Row } from './matcher.ts';
import { listMessages } from './messages.ts';
import { INDEXES, type MessageFilter, PROPERTY_NAMES, type PropertyName, propertyOf } from './properties.ts';
import { shapeKeyOf } from './shape.ts';
import { numberShapes } from './shapes.ts';
import {
  BLOCKS,
  byConfirmation,
  byTime,
  CONTENT_TYPES,
  CONTENTS,
  filtersOf,
  fits,
  type Made,
  NETWORK,
  type Samples,
  samplesOf,
  secondsOfBlock,
  settledOf,
  TYPES,
  valuesOf,
  world,
} from './testing/world.ts';
import { withTimeLimit } from './time-limit.ts';
import { beginCounting, type Counted, endCounting, readTotals } from './totals.ts';
import { HOLDS_NOTHING } from './weight.ts';
import { countListed, writeLists } from './write.ts';

/** Lists and totals over small random worlds are what a plain filter over all messages gives. */

const HEAVY_FROM = 4;
const WHOLE = 200;
const HERE = '00000001';

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
    const numbers = await database.kysely
      .transaction()
      .execute((trx) => numberShapes(trx, shaped.map(shapeKeyOf), HERE));
    await database.kysely
      .insertInto('anchor_events')
      .values(
        BLOCKS.map((block) => ({
          ...{ network: NETWORK, block_number: block, log_index: 0, block_time: secondsOfBlock(block) },
          ...{ tx_hash: '0x1', emitter: '0x2', content: '', state: 'processed' as const },
          ...{ reason: 'null', due_ms: 0, seen_ms: 0, cid: null },
        })),
      )
      .execute();
    samples = samplesOf(new Map(shaped.map((one, index) => [shapeKeyOf(one), numbers[index]!])));
  });
  after(() => database[Symbol.asyncDispose]());

  const acceptedOf = ({ owner, contentType, subject, tags, ...one }: Made) =>
    acceptAs(
      { ...one, form: 'envelope', signature: '', sourceText: '' },
      { owner, contentType, subject, tags },
    );

  const countAll = (trx: Transaction<Schema>, counted: readonly Counted[], heavyFrom: number) =>
    endCounting(trx, beginCounting(trx, counted), heavyFrom);

  test('of labels that become heavy together a few do with each batch, until all have', async () => {
    const { kysely: db } = database;
    const labels = Array.from({ length: 4 }, (_, n) => labelOf(TAG_LABEL.letter, `risen ${n}`));
    const heavy: number[] = [];
    let sum = 0;
    for (const size of [1, 499, 500]) {
      sum += size;
      const batch = Array.from({ length: size }, () => ({ labels, by: 1 as const }));
      await db.transaction().execute((trx) => countAll(trx, batch, 1));
      const totals = await readTotals(db, labels);
      assert.deepEqual(
        [...totals.values()].map(({ total }) => total),
        labels.map(() => sum),
      );
      heavy.push([...totals.values()].filter((one) => one.heavy).length);
    }
    assert.deepEqual(heavy, [1, 2, 4]);
  });

  test('what a message of 64 frequent tags costs grows as its tags do', async () => {
    const { kysely: db } = database;
    await sql`truncate totals`.execute(db);
    const own = [labelOf('s', '0xa'), labelOf('c', 'x')];
    const tags = Array.from({ length: 64 }, (_, n) => labelOf(TAG_LABEL.letter, `tag ${n}`));
    const count = (heavyFrom: number) =>
      db
        .transaction()
        .execute((trx) => countAll(trx, [{ labels: [...own, ...tags], by: 1 as const }], heavyFrom));
    await count(Infinity);
    await sql`update totals set heavy = true where a <> ''`.execute(db);
    await count(Infinity);
    const { rows } = await sql<{ pairs: number }>`
      select count(*) as pairs from totals where b <> '' and total = 1`.execute(db);
    assert.deepEqual(rows, [{ pairs: own.length * tags.length + 1 }]);
  });

  /** One batch comes into the lists; some of it leaves them again. */
  async function write(batch: readonly Made[]): Promise<void> {
    await createWrite<Schema>(database.pool)(async (writer) => {
      const { trx } = writer;
      const shapes = await numberShapes(trx, batch.map(shapeKeyOf), HERE);
      const listed = batch.map((one, index) => ({ accepted: acceptedOf(one), shape: shapes[index]! }));
      await trx
        .insertInto('messages')
        .values(
          batch.map(({ itemHash, content, more, contentType, block: _block, tags, ...one }, index) => ({
            ...one,
            item_hash: itemHash,
            content: JSON.stringify({ ...content, ...more }),
            content_type: contentType,
            tags: [...tags],
            shape: shapes[index]!,
            ...{ form: 'envelope' as const, signature: '', status: 'processed' as const },
            ...{ reason: 'null', decide_by_ms: 0, settled_at_ms: settledOf(one.time) },
          })),
        )
        .execute();
      const list = (some: typeof listed, shown: boolean) => {
        const all = some.map((one) => ({ ...one, shown }));
        return writeLists(writer, all, countListed(trx, all), HEAVY_FROM);
      };
      await list(listed, true);
      const gone = listed.filter((_, index) => batch[index]!.status !== 'processed');
      if (gone.length === 0) return;
      for (const { itemHash, status } of batch)
        await trx.updateTable('messages').set({ status }).where('item_hash', '=', itemHash).execute();
      await list(gone, false);
    });
  }

  async function fill({ messages, batch }: { messages: readonly Made[]; batch: number }): Promise<Made[]> {
    await sql`truncate messages, message_tags, totals, aggregates, confirmations`.execute(database.kysely);
    for (let from = 0; from < messages.length; from += batch) await write(messages.slice(from, from + batch));
    await sql`
      insert into aggregates (owner, key, created, "time", item_hash)
      select owner, split_part(subject, E'\\n', 2), min("time"), max("time"), max(item_hash) from messages
      where type = 'AGGREGATE' and status = 'processed' group by 1, 2`.execute(database.kysely);
    const confirmed = messages.filter(({ block }) => block !== null);
    if (confirmed.length > 0)
      await database.kysely
        .insertInto('confirmations')
        .values(
          confirmed.map(({ itemHash, sender, block }) => ({
            ...{ item_hash: itemHash, sender, chain: 'ETH', network: NETWORK },
            ...{ block_number: block!, log_index: 0, tx_hash: '0x1' },
          })),
        )
        .execute();
    return [...messages];
  }

  const hashesOf = async (filter: MessageFilter, page: TimedPage, sortedRowsMax?: number) =>
    (await listMessages(database.kysely, filter, page, HOLDS_NOTHING, sortedRowsMax)).map(
      (row) => row.item_hash,
    );

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
    const { made, fits: fitsRow } = matcherOf(filter);
    const columns = sql.join([sql`m.*`, ...columnsFor(made)]);
    const among = filter.statuses ? sql`` : sql`where m.status = 'processed'`;
    const { rows } = await sql<Row>`select ${columns} from messages m ${among}`.execute(database.kysely);
    return rows.filter(fitsRow).map((row) => row.item_hash);
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

  test('in order of first confirmations, by pages and by cursors', async () => {
    await fc.assert(
      fc.asyncProperty(world, filtersOf(samples), async (made, filter) => {
        const listed = await fill(made);
        for (const oldestFirst of [false, true]) {
          const expected = listed
            .filter((one) => fits(samples, filter, one))
            .sort(byConfirmation(oldestFirst ? 1 : -1))
            .map(({ itemHash }) => itemHash);
          const found: string[] = [];
          let after: ConfirmedPage['after'];
          for (let page = 0; page < WHOLE; page++) {
            const rows = await listByConfirmation(database.kysely, filter, {
              ...{ limit: 7, offset: 0, after, oldestFirst },
            });
            found.push(...rows.map((row) => row.item_hash));
            const last = rows.at(-1);
            if (!last) break;
            after = { confirmed: last.confirmed, time: last.time, itemHash: last.item_hash };
          }
          assert.deepEqual(found, expected);
          const second = await listByConfirmation(database.kysely, filter, {
            ...{ limit: 7, offset: 7, oldestFirst },
          });
          assert.deepEqual(
            second.map((row) => row.item_hash),
            expected.slice(7, 14),
          );
        }
      }),
      { numRuns: 10 },
    );
  });

  test('a shape that was read is not asked for again, whichever transaction needs it', async () => {
    const write = createWrite<Schema>(database.pool);
    const shaped = [{ type: 'POST', contentType: CONTENT_TYPES[0]!, content: CONTENTS[0]! }];
    const read = await write(({ trx }) => numberShapes(trx, shaped.map(shapeKeyOf), HERE));
    const asked = write(async ({ trx }) => {
      await sql`alter table shapes rename to elsewhere`.execute(trx);
      assert.deepEqual(await numberShapes(trx, shaped.map(shapeKeyOf), HERE), read);
      throw new Error('taken back');
    });
    await assert.rejects(asked, /taken back/);
  });

  test('a shape that was read on another timeline of the database is not believed: it may have been lost', async () => {
    const write = createWrite<Schema>(database.pool);
    const shaped = [{ type: 'POST', contentType: 'lost', content: { of: 'a standby that lagged behind' } }];
    const number = (timeline: string) =>
      write(({ trx }) => numberShapes(trx, shaped.map(shapeKeyOf), timeline));
    const first = await number(HERE);
    assert.deepEqual(await number(HERE), first);
    // A standby that has not received it is promoted, and another process gives its number to another shape.
    await sql`update shapes set digest = 'of another one', content_type = 'another one' where id = ${first[0]!}`.execute(
      database.kysely,
    );
    const [after] = await number('00000002');
    assert.notEqual(after, first[0]);
    const { rows } = await sql`select content_type from shapes where id = ${after}`.execute(database.kysely);
    assert.deepEqual(rows, [{ content_type: 'lost' }]);
  });

  test('every index that lists name is there, with the columns that they count on', async () => {
    const { rows } = await sql<{ name: string; columns: string[]; terms: string }>`
      select c.relname as name, array_agg(a.attname::text order by a.attnum) as columns,
        pg_get_expr(i.indpred, i.indrelid) as terms
      from pg_index i join pg_class c on c.oid = i.indexrelid join pg_attribute a on a.attrelid = c.oid
      where i.indpred is not null group by c.relname, i.indpred, i.indrelid`.execute(database.kysely);
    const columnOf = (property: PropertyName) => (property === 'tags' ? 'tag' : propertyOf(property).column);
    for (const { name, on, carries = [], isShared } of INDEXES) {
      const { columns, terms } = rows.find((row) => row.name === name)!;
      const own = [...on.map(columnOf), 'time', 'item_hash', ...carries.map(columnOf)];
      assert.deepEqual(columns, own, name);
      assert.equal(terms.includes(`'${name}'`), !isShared, `${name} says its name`);
    }
  });

  test('a list that would take too long is broken off, and the connection goes on as before', async () => {
    const { kysely } = database;
    const limitOf = async (db: typeof kysely) =>
      (await sql<{ statement_timeout: string }>`show statement_timeout`.execute(db)).rows[0]!
        .statement_timeout;
    const before = await limitOf(kysely);
    const sleep = withTimeLimit(kysely, (on) => sql`select pg_sleep(60)`.execute(on), { timeoutMs: 20 });
    await assert.rejects(sleep, { code: 'LIST_TOO_COSTLY' });
    assert.equal(await withTimeLimit(kysely, limitOf, { timeoutMs: 20_000 }), '20s');
    assert.equal(await limitOf(kysely), before);
  });

  test('a list is neither compiled first nor shared out, whatever the server would do', async () => {
    const settingsOf = async (db: typeof database.kysely) =>
      (
        await sql<{ value: string }>`select setting as value from pg_settings
        where name in ('jit', 'max_parallel_workers_per_gather') order by name`.execute(db)
      ).rows.map(({ value }) => value);
    await database.kysely.connection().execute(async (db) => {
      await sql`select set_config('jit', 'on', false), set_config('max_parallel_workers_per_gather', '2', false)`.execute(
        db,
      );
      assert.deepEqual(await withTimeLimit(db, settingsOf), ['off', '0']);
      assert.deepEqual(await settingsOf(db), ['on', '2']);
      await sql`reset all`.execute(db);
    });
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
      { numRuns: 2, endOnFailure: true },
    );
  });
});
