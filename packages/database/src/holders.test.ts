import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { Kysely, PostgresDialect } from 'kysely';
import type pg from 'pg';
import { from } from 'pg-copy-streams';
import { type Database, openPool } from './connect.ts';
import { asDatabaseError } from './failure.ts';
import { HOLD_IDLE_MS, mayHoldLong } from './holders.ts';
import { createTestDatabase } from './testing/database.ts';
import { startTestPooler } from './testing/pooler.ts';
import { startTcpTestServer } from './testing/tcp-server.ts';

const lines: string[] = [];
const log = createLogger('test', 'warn', { write: (line) => void lines.push(line) });
/**
 * Those that were ended on this side: PostgreSQL's own limit would come later, and without a word here. Where the machine is very
 * busy, the frozen one gives its server up before anybody ends it.
 */
const countEnded = () => lines.filter((line) => /held up others|is given up/.test(line)).length;
/** It is told a moment after those go on who waited. */
const untilEnded = (count: number) => until('they are ended', countEnded, (ended) => ended >= count);

/** What a test locks, a row for each of those that hold one; and where rows are sent. */
const prepare = ({ pool }: Database<unknown>) =>
  pool.query(
    'create table place (n int primary key); create table sent (n int); insert into place values (0), (1), (2)',
  );

/** A transaction that has a row which others want. */
async function holdRow({ pool }: Database<unknown>, n: number): Promise<pg.PoolClient> {
  const client = await pool.connect();
  // Its end is told to whoever asks it next.
  client.on('error', () => {});
  await client.query('begin');
  await client.query('select from place where n = $1 for update', [n]);
  return client;
}

const wantRow = ({ pool }: Database<unknown>, n: number) =>
  pool.query('select from place where n = $1 for update', [n]);

/** Begins to send rows, as a process does that is frozen before the first of them. @returns how it fails */
const beginCopy = (client: pg.PoolClient) => {
  const rows = client.query(from('copy sent (n) from stdin'));
  return new Promise<unknown>((resolve) => rows.once('error', resolve));
};

const codeOf = (error: unknown) => asDatabaseError(error)?.code ?? String(error);
const failureOf = (query: Promise<unknown>) => query.then(() => 'answered', codeOf);

/** A process is frozen, others want what it has, and it goes on. @returns what it is told then */
async function freeze(from: Database<unknown>, others: Database<unknown>, n: number, isSending: boolean) {
  const holding = await holdRow(from, n);
  try {
    const sent = isSending ? beginCopy(holding) : undefined;
    await Promise.all([1, 2].map(() => wantRow(others, n)));
    return sent ? codeOf(await sent) : await failureOf(holding.query('select 1'));
  } finally {
    holding.release(true);
  }
}

describe('whoever waits for a lock that a frozen process has gets it', () => {
  test('where the process was sending rows, and where it was between two statements', async () => {
    await using first = await createTestDatabase<unknown>({ log });
    await prepare(first);
    await using second = await openPool<unknown>({ connectionString: first.url }, { log });
    const before = countEnded();
    const told = await Promise.all([true, false].map((isSending, n) => freeze(first, second, n, isSending)));
    await untilEnded(before + 2);
    // A later try may succeed.
    assert.deepEqual(told, ['DATABASE_UNAVAILABLE', 'DATABASE_UNAVAILABLE']);
  });

  test('through a pooler as well', async () => {
    await using server = await startTcpTestServer(log);
    await using pooler = await startTestPooler(server.url);
    await using first = await openPool<unknown>({ connectionString: pooler.url }, { log });
    await prepare(first);
    await using second = await openPool<unknown>({ connectionString: pooler.url }, { log });
    const before = countEnded();
    assert.equal(await freeze(first, second, 0, true), 'DATABASE_UNAVAILABLE');
    await untilEnded(before + 1);
  });
});

test('who works, says that it may take long, or is another program is waited for', async () => {
  await using first = await createTestDatabase<unknown>({ log });
  await prepare(first);
  await using second = await openPool<unknown>({ connectionString: first.url }, { log });
  const foreign = new URL(first.url);
  foreign.searchParams.set('application_name', 'psql');
  await using other = await openPool<unknown>({ connectionString: foreign.href }, { log });
  const longer = ({ pool }: { pool: Pick<pg.Pool, 'query'> }) =>
    pool.query('select pg_sleep($1)', [HOLD_IDLE_MS / 1_000 + 2]);
  const rest = async (client: pg.PoolClient) => {
    const pool = {
      connect: async () => ({ ...client, query: client.query.bind(client), release: () => {} }),
    };
    await mayHoldLong(
      new Kysely<unknown>({ dialect: new PostgresDialect({ pool: pool as unknown as pg.Pool }) }),
    );
    await longer(second);
  };
  const ways: [Database<unknown>, (client: pg.PoolClient) => Promise<unknown>][] = [
    [first, (client) => longer({ pool: client })],
    [first, rest],
    [other, () => longer(second)],
  ];
  await Promise.all(
    ways.map(async ([database, hold], n) => {
      const holding = await holdRow(database, n);
      const wanted = wantRow(second, n);
      await hold(holding);
      await holding.query('commit');
      holding.release();
      await wanted;
    }),
  );
});
