import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createLogger } from '@skerry/kit';
import { type Kysely, sql } from 'kysely';
import type { Pool } from 'pg';
import { partOf } from '../shares/pool-part.ts';
import { createTestDatabase, type TestDatabase } from '../testing/database.ts';
import { createWrite, rowsFrom } from '../write.ts';
import { prepared } from './prepared.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as (options: { type: 'minor' }) => void;
setFlagsFromString('--no-expose-gc');

const TIMES = 20;
const ROWS = 1_000;
/** A row is more than its text. */
const ROW_CHARS = 100;
const createTexts = () => Array.from({ length: ROWS }, (_, at) => `${'x'.repeat(ROW_CHARS)}${at}`);

let database: TestDatabase<object>;
let part: Pool;
before(async () => {
  database = await createTestDatabase({ log: createLogger('test', 'fatal') });
  const take = async () => {
    const texts = createTexts();
    return { [Symbol.dispose]: () => void texts.length };
  };
  part = partOf(database.pool, { take, waiting: 0 });
  await database.pool.query('create table texts (text text)');
});
after(() => database[Symbol.asyncDispose]());

const oldBytes = () =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space')!.space_used_size;

/**
 * What `use` leaves among old objects, once young ones were collected twice: what lives then is taken for old. The median, since code
 * is compiled meanwhile, and the whole heap may be collected.
 */
async function leftBy(use: () => Promise<unknown>): Promise<number> {
  const left: number[] = [];
  for (let time = 0; time < TIMES; time++) {
    const before = oldBytes();
    await use();
    for (const _ of [1, 2]) {
      await setImmediate();
      collect({ type: 'minor' });
    }
    left.push(oldBytes() - before);
  }
  return left.toSorted((a, b) => a - b)[TIMES / 2]!;
}

const select = (db: Kysely<object>, mark = sql``) =>
  sql`${mark} select repeat('x', ${sql.lit(ROW_CHARS)}) || n as text from generate_series(1, ${ROWS}::int) n`.execute(
    db,
  );

for (const [what, use] of [
  ['a statement', () => select(database.kysely)],
  ['a prepared statement', () => select(database.kysely, prepared())],
  [
    'a transaction',
    () => {
      const rows = createTexts();
      return createWrite<object>(database.pool)(async ({ trx }) => {
        await sql`select ${rows.length}::int`.execute(trx);
      });
    },
  ],
  [
    'a COPY',
    () =>
      createWrite<object>(database.pool)(async ({ copy }) => {
        const rows = rowsFrom(createTexts(), (text) => [text]);
        copy('texts', ['text'], rows);
      }),
  ],
  ['whoever had a turn at a connection', () => part.query('select 1')],
] as const)
  test(`what ${what} read or wrote is gone with the next collection of young objects`, async () => {
    const left = await leftBy(use);
    assert.ok(left < (ROWS * ROW_CHARS) / 2, `${Math.round(left)} bytes are left each time`);
  });
