import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { tooLong, watchListTimes } from '../../testing/list-times.ts';
import { askedBy, withTimeLimit } from './time-limit.ts';
import { readWeighed } from './weight.ts';

const MIB = 1024 * 1024;

describe('the time of a list', () => {
  let database: TestDatabase<Schema>;
  before(async () => {
    database = await createTestDatabase<Schema>({ log: createLogger('test', 'fatal') });
  });
  after(() => database[Symbol.asyncDispose]());

  /** Somebody who asks, and what comes of it. @param isFree whether a turn is had at once */
  function asking(t: TestContext, isFree: boolean) {
    // However slow the machine is, no time passes for what is cheap.
    const nowMs = performance.now();
    t.mock.method(performance, 'now', () => nowMs);
    const log: (string | number)[] = [];
    const turns = {
      isFree: () => isFree,
      async take() {
        log.push('taken');
        return { [Symbol.dispose]: () => void log.push('given back') };
      },
      async takeTry() {
        log.push('tried');
        return { [Symbol.dispose]: () => void log.push('over') };
      },
    };
    const watching = watchListTimes(database.pool, (ms) => void log.push(ms));
    return {
      log,
      db: askedBy(database.kysely, turns),
      [Symbol.dispose]() {
        watching[Symbol.dispose]();
        t.mock.restoreAll();
      },
    };
  }

  test('it is read in a turn; where none is free, what is cheap is read without one, and the rest waits', async (t) => {
    const read = async (isFree: boolean, failures: Error[]) => {
      using asked = asking(t, isFree);
      const found = await withTimeLimit(asked.db, async (on) => {
        const failure = failures.pop();
        if (failure) throw failure;
        return (await sql<{ one: number }>`select 1 as one`.execute(on)).rows;
      });
      assert.deepEqual(found, [{ one: 1 }]);
      return asked.log;
    };
    assert.deepEqual(await read(true, []), ['taken', 5_000, 'given back']);
    assert.deepEqual(await read(false, []), ['tried', 250, 'over']);
    assert.deepEqual(await read(false, [tooLong()]), ['tried', 250, 'over', 'taken', 5_000, 'given back']);
    await assert.rejects(read(true, [tooLong()]), { code: 'LIST_TOO_COSTLY' });
    await assert.rejects(read(false, [tooLong(), tooLong()]), { code: 'LIST_TOO_COSTLY' });
    await assert.rejects(read(false, [new Error('another failure')]), { message: 'another failure' });
  });

  test('a turn is given back where the list fails, and within a transaction none is taken', async (t) => {
    using asked = asking(t, true);
    const fails = () => Promise.reject(tooLong());
    await assert.rejects(withTimeLimit(asked.db, fails), { code: 'LIST_TOO_COSTLY' });
    assert.deepEqual(asked.log.splice(0), ['taken', 5_000, 'given back']);
    const within = (on: Kysely<Schema>) => withTimeLimit(on, async () => 'read');
    assert.equal(await asked.db.transaction().execute(within), 'read');
    assert.deepEqual(asked.log, [5_000]);
    const refused = askedBy(database.kysely, {
      isFree: () => false,
      take: () => Promise.reject(new AppError('OVERLOADED', 'no turns')),
      takeTry: async () => ({ [Symbol.dispose]() {} }),
    });
    await assert.rejects(withTimeLimit(refused, fails), { code: 'OVERLOADED' });
  });

  test('what is read within the time of a list has that alone, and sees with it what was there when it began', async (t) => {
    using asked = asking(t, false);
    const levelOf = async (on: Kysely<Schema>) =>
      (await sql<{ level: string }>`select current_setting('transaction_isolation') as level`.execute(on))
        .rows[0]!.level;
    const list = (on: Kysely<Schema>) => withTimeLimit(on, levelOf);
    const level = await withTimeLimit(asked.db, list, { isolation: 'repeatable read' });
    assert.deepEqual([level, asked.log], ['repeatable read', ['tried', 250, 'over']]);
  });

  test('what waits for a turn holds no heavy answer meanwhile', async (t) => {
    using asked = asking(t, false);
    const { log, db } = asked;
    const read = async (bytes: number) => {
      const rows = await withTimeLimit(db, (on) =>
        readWeighed<{ text: string }>(on, {
          columns: sql`t.text`,
          from: sql`(select repeat('x', ${bytes}::integer) as text) t`,
          bytes: sql`octet_length(t.text)`,
          hold: (held) => void log.push(`${held} held`),
        }),
      );
      assert.equal(rows[0]!.text.length, bytes);
      return log.splice(0);
    };
    assert.deepEqual(await read(MIB), ['tried', 250, `${MIB} held`, 'over']);
    assert.deepEqual(await read(MIB + 1), [
      'tried',
      250,
      'over',
      'taken',
      5_000,
      `${MIB + 1} held`,
      'given back',
    ]);
  });

  test('its statements have the time together', async (t) => {
    const now = performance.now.bind(performance);
    let laterMs = 0;
    t.mock.method(performance, 'now', () => now() + laterMs);
    const told: number[] = [];
    const note = async (on: Kysely<Schema>) => {
      const { rows } = await sql<{ ms: number }>`
        select setting::integer as ms from pg_settings where name = 'statement_timeout'`.execute(on);
      told.push(rows[0]!.ms);
    };
    const list = async (on: Kysely<Schema>) => {
      await note(on);
      laterMs = 400_000;
      // From the end of this one on.
      await note(on);
      await note(on);
      laterMs = 1_000_000;
      await note(on);
    };
    await assert.rejects(withTimeLimit(database.kysely, list, { timeoutMs: 1_000_000 }), {
      code: 'LIST_TOO_COSTLY',
    });
    assert.deepEqual([told.length, ...told.slice(0, 2)], [3, 1_000_000, 1_000_000]);
    assert.ok(told[2]! > 0 && told[2]! <= 600_000, `${told}`);
  });
});
