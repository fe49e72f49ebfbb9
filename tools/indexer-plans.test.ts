import assert from 'node:assert/strict';
import { test } from 'node:test';
import type pg from 'pg';
import { fillIndexer, listQuestions } from '../bench/indexer/queries.ts';
import { explain, type Query } from '../bench/measure/queries.ts';
import { parseArguments } from '../packages/indexer/src/read/arguments.ts';
import { listEvents } from '../packages/indexer/src/read/events.ts';
import { createIndexerDatabase, NETWORK, OTHER, TOKEN } from '../packages/indexer/src/testing/setup.ts';

const BLOCKS = 50;
const ROWS = /^indexer_(events|transactions)_n/;

/** A pool that notes what its clients are asked. */
function recording(pool: pg.Pool, queries: Query[]): pg.Pool {
  const connect = async () => {
    const client = await pool.connect();
    return new Proxy(client, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key);
        if (typeof value !== 'function') return value;
        return (...parameters: unknown[]) => {
          if (key === 'query')
            queries.push({ sql: parameters[0] as string, parameters: (parameters[1] as unknown[]) ?? [] });
          return value.apply(target, parameters);
        };
      },
    });
  };
  return { connect } as unknown as pg.Pool;
}

test('no filter of indexed events and transactions reads a whole partition', async () => {
  await using database = await createIndexerDatabase();
  const { pool } = database;
  await fillIndexer(pool, BLOCKS);
  const queries: Query[] = [];
  let plans = 0;
  for (const [name, ask] of listQuestions(recording(pool, queries), BLOCKS)) {
    queries.length = 0;
    await ask();
    const client = await pool.connect();
    for (const query of queries) {
      // What is set stands for the plans after it, as it did when it was asked.
      if (!/^(select|with)/i.test(query.sql)) await client.query(query.sql);
      else if (ROWS.test(/indexer_\w+_n\d+/.exec(query.sql)?.[0] ?? '')) {
        const { scanned } = await explain(client as unknown as pg.Pool, query);
        assert.deepEqual(
          scanned.filter((table) => ROWS.test(table)),
          [],
          `${name}\n${query.sql}`,
        );
        plans++;
      }
    }
    client.release();
  }
  assert.ok(plans >= 30, `${plans} plans`);
});

test('what thousands of events have is counted up to 500, and no further', async () => {
  await using database = await createIndexerDatabase();
  const { pool } = database;
  await fillIndexer(pool, BLOCKS);
  // One event of each block has each value; of ten values one is the other contract's.
  const list = (values: number, contract?: string, page = { limit: 20, offset: 0 }) => {
    const args = Array.from({ length: values }, (_, value) => parseArguments({ value })).flat();
    return listEvents(pool, NETWORK, { args, contract }, page);
  };
  const count = async (...asked: Parameters<typeof list>) => {
    const { total, totalIsExact } = (await list(...asked))!;
    return { total, totalIsExact };
  };
  assert.deepEqual(await count(40), { total: 500, totalIsExact: false });
  assert.deepEqual(await count(40, TOKEN), { total: 500, totalIsExact: false });
  assert.deepEqual(await count(40, OTHER), { total: 4 * BLOCKS, totalIsExact: true });
  assert.deepEqual(await count(9), { total: 9 * BLOCKS, totalIsExact: true });
  const deep = (await list(40, undefined, { limit: 20, offset: 39 * BLOCKS }))!;
  assert.deepEqual(
    [deep.items.length, deep.items[0]!.block_number, deep.total, deep.totalIsExact],
    [20, 1, 40 * BLOCKS, true],
  );
});
