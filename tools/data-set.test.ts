import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createWrite } from '@skerry/database';
import { createTestDatabase, type TestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { sql } from 'kysely';
import { type DataSet, FILES, fileHashOf, makeMessage } from '../bench/data-set/data-set.ts';
import { createDice } from '../bench/data-set/dice.ts';
import { loadDataSet } from '../bench/data-set/load.ts';
import { acceptMessage } from '../services/core/src/intake/accept.ts';
import { Pipeline } from '../services/core/src/intake/pipeline/pipeline.ts';
import { createEventLog } from '../services/core/src/notify/events/log.ts';
import { SINGLE_LABELS, TAG_LABEL } from '../services/core/src/state/lists/labels.ts';
import { HEAVY } from '../services/core/src/state/lists/totals.ts';
import { MIGRATIONS } from '../services/core/src/store/directory.ts';
import type { Schema } from '../services/core/src/store/schema.ts';

/** The bench's data set, loaded by COPY and derived in SQL, is what the pipeline makes of the same messages. */

const set: DataSet = { dice: createDice(7), count: 4_000 };
const TABLES = [
  'message_tags',
  'totals',
  'shapes',
  'aggregates',
  'aggregate_entries',
  'aggregate_covered',
  'amended_posts',
  'aggregate_totals',
  'digests',
] as const;

const makeDatabase = () =>
  createTestDatabase<Schema>({ migrations: MIGRATIONS, log: createLogger('test', 'fatal') });

async function ingest({ kysely, pool }: TestDatabase<Schema>): Promise<void> {
  for (let file = 0; file < FILES; file++) {
    await kysely
      .insertInto('files')
      .values({ hash: fileHashOf(set.dice, file), size_bytes: 1, content_type: 'text/plain' })
      .execute();
  }
  const pipeline = new Pipeline({
    db: kysely,
    events: createEventLog(kysely),
    write: createWrite(pool),
    schedulers: new Set(),
    pendingHorizonMs: 3_600_000,
    readContentFile: async () => undefined,
    now: Date.now,
  });
  const numbers = Array.from({ length: set.count }, (_, index) => index);
  await Promise.all(numbers.map((index) => pipeline.submit(acceptMessage(makeMessage(set, index).message))));
  await pipeline.idle();
  await pipeline.close();
}

/** Shapes are numbered in order of arrival: in their place stands what they are. */
async function readTable({ kysely }: TestDatabase<Schema>, table: string): Promise<string[]> {
  const { rows: shapes } = await sql<{ id: number; digest: string }>`select id, digest from shapes`.execute(
    kysely,
  );
  const digests = new Map(shapes.map(({ id, digest }) => [id, digest]));
  const { rows } = await sql<Record<string, unknown>>`select * from ${sql.table(table)}`.execute(kysely);
  const label = (text: unknown) =>
    typeof text === 'string' && text.startsWith('k:') ? `k:${digests.get(Number(text.slice(2)))}` : text;
  return (
    rows
      // A label that lost all of its messages keeps its row.
      .filter(({ total }) => total !== 0)
      .map(({ id: _id, received_at: _at, settled_at_ms: _settled, decide_by_ms: _by, ...row }) => {
        if (typeof row.shape === 'number') row.shape = digests.get(row.shape);
        if (table !== 'totals') return JSON.stringify(row);
        const pair = [label(row.a), label(row.b)];
        return JSON.stringify([...(row.b === '' ? pair : pair.sort()), row.total, row.heavy]);
      })
      .sort()
  );
}

/** Every total that is kept, counted from the messages. */
async function countTotals({ kysely }: TestDatabase<Schema>): Promise<string[]> {
  const { rows } = await sql<{ a: string; b: string; total: number; counted: number }>`
    with labels as materialized (
      select item_hash, array[${sql.raw(SINGLE_LABELS.map(({ label }) => label).join(', '))}, '']
        || array(select ${sql.raw(TAG_LABEL.label)} from (select distinct unnest(tags) as tag) t) as labels
      from messages where status = 'processed')
    select a, b, total, count(l.item_hash) as counted from totals
    left join labels l on a = any(l.labels) and b = any(l.labels)
    group by a, b, total`.execute(kysely);
  assert.ok(rows.length > 1_000);
  return rows.filter(({ total, counted }) => total !== counted).map((row) => JSON.stringify(row));
}

describe('the data set of the query bench', () => {
  test('COPY and SQL give what the pipeline gives, and its totals are what counting gives', async () => {
    await using kept = await makeDatabase();
    await using copied = await makeDatabase();
    await ingest(kept);
    const client = await copied.pool.connect();
    await loadDataSet(client, { set, heavyFrom: HEAVY, remakeIndexes: false, say: () => {} });
    client.release(true);
    assert.deepEqual(await countTotals(kept), []);
    for (const table of ['messages', ...TABLES]) {
      const [actual, expected] = [await readTable(copied, table), await readTable(kept, table)];
      assert.equal(actual.length, expected.length, table);
      // One row says more than thousands.
      const at = actual.findIndex((row, index) => row !== expected[index]);
      assert.equal(actual[at], expected[at], table);
    }
  });
});
