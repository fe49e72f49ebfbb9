import assert from 'node:assert/strict';
import type { Duplex } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { sql } from 'kysely';
import { createTestDatabase, type TestDatabase } from './testing/database.ts';
import { createWrite, rowsFrom, type Write } from './write.ts';

interface Schema {
  one: { n: number; text: string | null };
  two: { n: number };
}

/** More than the connection takes at once. */
const MANY = 20_000;

describe('rows by COPY', () => {
  let database: TestDatabase<Schema>;
  let write: Write<Schema>;
  before(async () => {
    database = await createTestDatabase<Schema>({ log: createLogger('test', 'fatal') });
    await database.pool.query(
      'create table one (n int primary key, text text); create table two (n int references one (n))',
    );
    write = createWrite(database.pool);
  });
  after(() => database[Symbol.asyncDispose]());

  const countIn = async (table: 'one' | 'two') =>
    Number((await database.pool.query(`select count(*) from ${table}`)).rows[0].count);

  test('of several tables go in their order, before the next statement', async () => {
    const text = 'a\tb\nc\\d\re"{}';
    const seen = await write(async ({ trx, copy }) => {
      copy(
        'one',
        ['n', 'text'],
        [
          [1, text],
          [2, null],
        ],
      );
      copy('two', ['n'], [[1], [2]]);
      return trx.selectFrom('one').innerJoin('two', 'two.n', 'one.n').selectAll().orderBy('one.n').execute();
    });
    assert.deepEqual(seen, [
      { n: 1, text },
      { n: 2, text: null },
    ]);
  });

  test('go with the commit where no statement follows, however many they are, as fast as the server takes them', async () => {
    const rows = Array.from({ length: MANY }, (_, n) => [n + 10, 'x'.repeat(200)]);
    let waitingMax = 0;
    database.pool.once('acquire', (client) => {
      const { stream } = (client as unknown as { connection: { stream: Duplex } }).connection;
      const write = stream.write.bind(stream) as (...args: unknown[]) => boolean;
      const noted = (...args: unknown[]) => {
        const isRoom = write(...args);
        waitingMax = Math.max(waitingMax, stream.writableLength);
        return isRoom;
      };
      Object.assign(stream, { write: noted });
    });
    await write(async ({ copy }) => copy('one', ['n', 'text'], rows));
    assert.equal(await countIn('one'), 2 + MANY);
    // Of four megabytes.
    assert.ok(waitingMax > 0 && waitingMax < 1_000_000, `${waitingMax} bytes waited`);
  });

  test('that are many are on their way before the next statement, and one that cannot be made says why', async () => {
    const made = Promise.withResolvers<void>();
    const numbers = Array.from({ length: MANY }, (_, n) => -n - 100_000);
    await write(async ({ trx, copy }) => {
      copy(
        'one',
        ['n'],
        rowsFrom(numbers, (n, index) => {
          if (index === MANY - 1) made.resolve();
          return [n];
        }),
      );
      await made.promise;
      await trx.deleteFrom('one').where('n', '<', 0).execute();
    });
    const before = await countIn('one');
    const unmade = new Error('no such row');
    const failing = write(async ({ copy }) => {
      copy(
        'one',
        ['n'],
        rowsFrom(numbers, (n, index) => {
          if (index === MANY - 1) throw unmade;
          return [n];
        }),
      );
      copy('two', ['n'], [[1]]);
    });
    await assert.rejects(failing, unmade);
    const givenUp = write(async ({ copy }) => {
      copy(
        'one',
        ['n'],
        rowsFrom(numbers, (n) => [n]),
      );
      await new Promise(setImmediate);
      throw new Error('gave up');
    });
    await assert.rejects(givenUp, { message: 'gave up' });
    assert.equal(await countIn('one'), before);
  });

  test('of a transaction that fails are not kept, and what the server refuses is said', async () => {
    const before = [await countIn('one'), await countIn('two')];
    const failing: Parameters<Write<Schema>>[0][] = [
      async ({ copy }) => {
        copy('one', ['n'], [[-1]]);
        throw new Error('gave up');
      },
      // The first is there already; the rest of the rows, and the second table, come behind the refusal.
      async ({ copy }) => {
        copy('one', ['n'], [[1], ...Array.from({ length: MANY }, (_, n) => [-n - 2])]);
        copy('two', ['n'], [[1]]);
      },
      async ({ copy }) => copy('nowhere', ['n'], [[1]]),
      async ({ trx, copy }) => {
        copy('two', ['n'], [[-7]]);
        await sql`select 1`.execute(trx);
      },
    ];
    const said = await Promise.all(
      failing.map((body) =>
        write(body).then(
          () => 'done',
          (error: Error) => error.message,
        ),
      ),
    );
    assert.deepEqual(said, [
      'gave up',
      'duplicate key value violates unique constraint "one_pkey"',
      'relation "nowhere" does not exist',
      'insert or update on table "two" violates foreign key constraint "two_n_fkey"',
    ]);
    assert.deepEqual([await countIn('one'), await countIn('two')], before);
    // Each connection answers what it is asked.
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        write(async ({ trx }) => (await sql<{ n: number }>`select ${n}::int as n`.execute(trx)).rows[0]!.n),
      ),
    );
    assert.deepEqual(answers, [0, 1, 2, 3, 4, 5, 6, 7]);
  });
});
