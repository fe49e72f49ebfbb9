import assert from 'node:assert/strict';
import type { Duplex } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { sql, type Transaction } from 'kysely';
import { prepared } from './statements/prepared.ts';
import type { CheckingClient } from './statements/values.ts';
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

describe('statements of one transaction', () => {
  let database: TestDatabase<Schema>;
  let write: Write<Schema>;
  before(async () => {
    database = await createTestDatabase<Schema>({ log: createLogger('test', 'fatal') });
    await database.pool.query(
      'create table one (n int primary key, text text); insert into one values (1, null)',
    );
    write = createWrite(database.pool);
  });
  after(() => database[Symbol.asyncDispose]());

  const insert = (trx: Transaction<Schema>, n: number) => trx.insertInto('one').values({ n }).execute();
  const numbers = async () =>
    (await database.kysely.selectFrom('one').select('n').orderBy('n').execute()).map(({ n }) => n);

  test('are sent in their order, though the first is not answered yet', async () => {
    const holder = await database.pool.connect();
    await holder.query('begin; select from one where n = 1 for update');
    const sent = Promise.withResolvers<void>();
    database.pool.once('acquire', (client) => {
      const { stream } = (client as unknown as { connection: { stream: Duplex } }).connection;
      const send = stream.write.bind(stream) as (...args: unknown[]) => boolean;
      const noted = (...args: unknown[]) => {
        if (String(args[0]).includes('as second')) sent.resolve();
        return send(...args);
      };
      Object.assign(stream, { write: noted });
    });
    const seen = write(({ trx }) =>
      Promise.all([
        sql<{ text: string }>`update one set text = 'first' where n = 1 returning text`.execute(trx),
        sql<{ text: string }>`select text as text, 2 as second from one where n = 1`.execute(trx),
      ]),
    );
    await sent.promise;
    await holder.query('commit');
    holder.release();
    const [first, second] = await seen;
    assert.deepEqual([first.rows[0]!.text, second.rows[0]!.text], ['first', 'first']);
  });

  test('that are prepared keep their places where plans are made anew, the last one before the commit', async () => {
    const areOld = [true, false, true];
    database.pool.once('acquire', (client) => {
      const { prepared: plans } = client as unknown as CheckingClient;
      Object.assign(plans, { areOld: () => areOld.shift() ?? false });
    });
    const insertPrepared = (trx: Transaction<Schema>, n: number) =>
      sql<{ id: string }>`${prepared()} insert into one (n) values (${n}) returning xmin::text as id`.execute(
        trx,
      );
    const [first, seen] = await write(async ({ trx }) => {
      const answers = await Promise.all([
        insertPrepared(trx, 30),
        sql<{ n: number }>`select n from one where n = 30`.execute(trx),
      ]);
      insertPrepared(trx, 31).catch(() => {});
      insertPrepared(trx, 32).catch(() => {});
      return answers;
    });
    assert.equal(seen.rows[0]?.n, 30);
    const { rows } = await database.pool.query('select xmin::text as id from one where n in (30, 31, 32)');
    assert.deepEqual(
      rows.map(({ id }) => id),
      Array.from({ length: 3 }, () => first.rows[0]!.id),
    );
    assert.deepEqual(areOld, []);
  });

  test('of which one is refused before it is sent are not kept, nor any that comes when all is over', async () => {
    const before = await numbers();
    const unsent = write(async ({ trx }) => {
      await insert(trx, 40);
      sql`insert into one (n, text) values (41, ${'\0'})`.execute(trx).catch(() => {});
    });
    await assert.rejects(unsent, { code: 'INVALID_PARAMETERS' });
    let late!: Transaction<Schema>;
    await write(async ({ trx }) => {
      late = trx;
      await sql`select 1`.execute(trx);
    });
    await assert.rejects(insert(late, 42), { message: 'the transaction is over' });
    assert.deepEqual(await numbers(), before);
  });

  test('fail the commit where nobody waited for them, and what follows with their own error', async () => {
    const before = await numbers();
    const isDuplicate = (error: unknown) => (error as { code?: unknown }).code === '23505';
    const unwatched = write(async ({ trx }) => {
      await insert(trx, 20);
      insert(trx, 1).catch(() => {});
    });
    await assert.rejects(unwatched, isDuplicate);
    const followed = write(async ({ trx }) => {
      insert(trx, 1).catch(() => {});
      await insert(trx, 21);
    });
    await assert.rejects(followed, isDuplicate);
    const copied = write(async ({ trx, copy }) => {
      copy('one', ['n'], [[1]]);
      await insert(trx, 22);
    });
    await assert.rejects(copied, isDuplicate);
    assert.deepEqual(await numbers(), before);
    await write(({ trx }) => insert(trx, 50));
    assert.deepEqual(await numbers(), [...before, 50]);
  });
});
