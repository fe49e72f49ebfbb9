import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { Kysely, PostgresDialect } from 'kysely';
import { type DataSet, hashOf } from '../bench/data-set/data-set.ts';
import { createDice } from '../bench/data-set/dice.ts';
import { loadDataSet } from '../bench/data-set/load.ts';
import { explain, type Query, recordQueries } from '../bench/measure/queries.ts';
import {
  combine,
  combineThree,
  listContentTypes,
  listProperties,
  type Property,
} from '../bench/query/values.ts';
import type { TimedPage } from '../packages/database/src/page.ts';
import { createTestDatabase, type TestDatabase } from '../packages/database/src/testing/database.ts';
import { totalMessages } from '../services/core/src/state/lists/count.ts';
import { resolveFilter } from '../services/core/src/state/lists/filter.ts';
import { listMessages } from '../services/core/src/state/lists/messages.ts';
import type { MessageFilter } from '../services/core/src/state/lists/properties.ts';
import { HEAVY } from '../services/core/src/state/lists/totals.ts';
import { MIGRATIONS } from '../services/core/src/store/directory.ts';
import type { Schema } from '../services/core/src/store/schema.ts';

/** What the planner makes of every filter, alone and in pairs: no plan reads a whole table, and none reads many pages. */

const set: DataSet = { dice: createDice(3), count: 40_000 };
/** Tables that stay small, however many messages there are. */
const SMALL = ['shapes'];
/** Pages that a request may read. Looking through all messages of a large value reads more. */
const PAGES_MAX = 2_000;
const PAGES_OF_THREE_MAX = 700;

const PLACES: readonly (readonly [name: string, page: TimedPage])[] = [
  ['first page', { limit: 20, offset: 0 }],
  ['page 50', { limit: 20, offset: 980 }],
  ['cursor', { limit: 20, offset: 0, after: { time: 1_700_000_000, itemHash: hashOf(set.dice, 0) } }],
];

describe('plans of lists', () => {
  let database: TestDatabase<Schema>;
  let db: Kysely<Schema>;
  const recorded: Query[] = [];
  before(async () => {
    database = await createTestDatabase<Schema>({
      migrations: MIGRATIONS,
      log: createLogger('test', 'fatal'),
    });
    const client = await database.pool.connect();
    await loadDataSet(client, { set, heavyFrom: HEAVY, remakeIndexes: true, say: () => {} });
    client.release(true);
    db = new Kysely<Schema>({
      dialect: new PostgresDialect({ pool: database.pool }),
      log: ({ query: { sql, parameters } }) => void recorded.push({ sql, parameters }),
    });
  });
  after(() => database[Symbol.asyncDispose]());

  async function check(name: string, run: () => Promise<unknown>, pagesMax: number): Promise<number> {
    let sum = 0;
    for (const query of await recordQueries(recorded, run)) {
      const { scanned, pages } = await explain(database.pool, query);
      assert.deepEqual(
        scanned.filter((table) => !SMALL.includes(table)),
        [],
        `${name}\n${query.sql}`,
      );
      sum += pages;
    }
    assert.ok(sum <= pagesMax, `${name} reads ${sum} pages`);
    return sum;
  }

  async function checkAll(groups: readonly Property[], pagesMax = PAGES_MAX): Promise<string> {
    let most = 0;
    let count = 0;
    for (const { values } of groups)
      for (const { name, filter } of values) {
        const list = async (page: TimedPage, of: MessageFilter) =>
          listMessages(db, await resolveFilter(db, of), page);
        for (const [place, page] of PLACES)
          most = Math.max(most, await check(`${name}; ${place}`, () => list(page, filter), pagesMax));
        most = Math.max(most, await check(`${name}; total`, () => totalMessages(db, filter), pagesMax));
        count += PLACES.length + 1;
      }
    return `${count} requests, at most ${most} pages each`;
  }

  test('GET /messages: every filter, alone and in pairs', async (t) => {
    t.diagnostic(await checkAll(combine(await listProperties(db, set))));
  });

  test('GET /messages: three frequent values, which few messages may have together', async (t) => {
    const [, ...properties] = await listProperties(db, set);
    t.diagnostic(await checkAll(combineThree(properties), PAGES_OF_THREE_MAX));
  });

  test('GET /messages.json: addresses, channels, content types and dates', async (t) => {
    const [, addresses, channels] = await listProperties(db, set);
    const dates: Property = {
      name: 'dates',
      values: [
        { name: 'a year', filter: { from: 1_680_000_123, to: 1_711_000_000 } },
        { name: 'since', filter: { from: 1_680_000_123 } },
      ],
    };
    t.diagnostic(
      await checkAll(combine([addresses!, channels!, await listContentTypes(db, set.count), dates])),
    );
  });

  test('GET /messages: one of two tags, of which few messages have one', async (t) => {
    const [, , , tags] = await listProperties(db, set);
    const [heavy, medium, light] = tags!.values.map(({ filter }) => filter.tags!);
    const values = [
      [...heavy!, ...light!],
      [...medium!, ...heavy!],
      [...medium!, ...light!],
    ].map((both) => ({ name: both.join(), filter: { tags: both } }));
    t.diagnostic(await checkAll([{ name: 'two tags', values }]));
  });

  /** The value that the fewest rows have. */
  async function rarest(column: string, rows: string): Promise<string[]> {
    const { rows: found } = await database.pool.query<{ value: string }>(
      `select ${column} as value from ${rows} and ${column} is not null group by 1 order by count(*), 1 limit 1`,
    );
    return found.map((row) => row.value);
  }

  test('GET /messages.json: what messages refer to, by keys of aggregates, by what became of them', async (t) => {
    const values: MessageFilter[] = [
      { refs: await rarest('subject', `messages where type = 'POST'`) },
      { fileHashes: await rarest('subject', `messages where type = 'STORE'`) },
      { aggregateKeys: await rarest('key', 'aggregates where true') },
      { statuses: ['pending', 'rejected'] },
    ];
    const about: Property = {
      name: 'about',
      values: values.map((filter) => ({ name: JSON.stringify(filter), filter })),
    };
    const [, addresses] = await listProperties(db, set);
    t.diagnostic(await checkAll(combine([about, { ...addresses!, values: addresses!.values.slice(1) }])));
  });
});
