import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { Kysely, PostgresDialect } from 'kysely';
import { explain, type Query, recordQueries } from '../bench/measure/queries.ts';
import { createTestDatabase, type TestDatabase } from '../packages/database/src/testing/database.ts';
import { findCost, listCosts, readUsed, sumCosts } from '../services/core/src/state/credits/costs.ts';
import { MIGRATIONS } from '../services/core/src/store/directory.ts';
import type { Schema } from '../services/core/src/store/schema.ts';

/** What the planner makes of `GET /costs` and its siblings, where many things cost something and each was charged for a few times. */

const RESOURCES = 100_000;
const OWNERS = 2_000;
/** Tables that stay small, however many messages there are. */
const SMALL = ['credit_prices'];
/** Pages that a request may read. */
const PAGES_MAX = 2_000;
const PAGE = { limit: 100, offset: 0 };

const hashOf = (number: string) => `encode(sha256((${number})::text::bytea), 'hex')`;
const ownerOf = (number: string) => `'0x' || lpad(to_hex(${number} % ${OWNERS}), 40, '0')`;

const FILL = [
  `insert into credit_prices values ('instance', 0, 277778, 10), ('program', 0, 277778, 10), ('storage', 0, 0, 10),
     ('storage', 1700000000, 0, 11)`,
  `insert into credit_resources
     select ${hashOf('i')}, ${ownerOf('i')}, case when i % 50 = 0 then 'instance' else 'storage' end,
       1699000000 + i * 20, (i % 50 = 0)::int, i % 100 from generate_series(1, ${RESOURCES}) i`,
  `insert into credit_entries
     select ${hashOf('-i')}, 0, 'k' || i, 'expense', ${ownerOf('i')}, -i, ${hashOf('i / 2')}, 1699000000 + i, true
     from generate_series(1, ${RESOURCES}) i`,
  'vacuum analyze credit_prices, credit_resources, credit_entries',
];

describe('plans of costs', () => {
  let database: TestDatabase<Schema>;
  let db: Kysely<Schema>;
  let itemHash: string;
  let owner: string;
  const recorded: Query[] = [];
  before(async () => {
    database = await createTestDatabase<Schema>({
      migrations: MIGRATIONS,
      log: createLogger('test', 'fatal'),
    });
    const client = await database.pool.connect();
    await client.query('set statement_timeout = 0; set synchronous_commit = off');
    for (const sql of FILL) await client.query(sql);
    const { rows } = await client.query(`select item_hash, owner from credit_resources limit 1`);
    ({ item_hash: itemHash, owner } = rows[0]);
    client.release(true);
    db = new Kysely<Schema>({
      dialect: new PostgresDialect({ pool: database.pool }),
      log: ({ query: { sql, parameters } }) => void recorded.push({ sql, parameters }),
    });
  });
  after(() => database[Symbol.asyncDispose]());

  async function explainAll(run: () => Promise<unknown>): Promise<{ scanned: string[]; pages: number }> {
    const plans = [];
    for (const query of await recordQueries(recorded, run)) plans.push(await explain(database.pool, query));
    assert.ok(plans.length > 0);
    return {
      scanned: plans.flatMap(({ scanned }) => scanned).filter((table) => !SMALL.includes(table)),
      pages: plans.reduce((sum, { pages }) => sum + pages, 0),
    };
  }

  const requests: Readonly<Record<string, () => Promise<unknown>>> = {
    'a page of everything': () => listCosts(db, {}, PAGE),
    'page 50 of everything': () => listCosts(db, {}, { limit: 20, offset: 980 }),
    'a page of one owner': () => listCosts(db, { owner }, PAGE),
    'the sum of one owner': () => sumCosts(db, { owner }),
    'one message in the list': () => listCosts(db, { itemHash }, PAGE),
    'the sum of one message': () => sumCosts(db, { itemHash }),
    'the price of one message': () => findCost(db, itemHash),
    'what one message used': () => readUsed(db, itemHash),
  };
  for (const [name, run] of Object.entries(requests))
    test(`${name} reads no whole table, and few pages`, async (t) => {
      const { scanned, pages } = await explainAll(run);
      assert.deepEqual(scanned, []);
      assert.ok(pages <= PAGES_MAX, `${pages} pages`);
      t.diagnostic(`${pages} pages`);
    });

  test('the sum of everything reads each table once', async (t) => {
    const { scanned, pages } = await explainAll(() => sumCosts(db, {}));
    assert.equal(new Set(scanned).size, scanned.length);
    const { rows } = await database.pool.query<{ pages: number }>(
      `select sum(relpages)::int as pages from pg_class where relname like 'credit_%'`,
    );
    assert.ok(pages <= rows[0]!.pages, `${pages} of ${rows[0]!.pages} pages`);
    t.diagnostic(`${pages} pages`);
  });
});
