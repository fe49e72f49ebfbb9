import { type Allowed, Budget, type Page, readInTurn, type Turns, tookTooLong } from '@skerry/database';
import { AppError } from '@skerry/protocol';
import {
  type IsolationLevel,
  type Kysely,
  type KyselyPlugin,
  type PluginTransformQueryArgs,
  type PluginTransformResultArgs,
  sql,
} from 'kysely';
import type { Schema } from '../../store/schema.ts';

/** The longest that all statements of one list together may keep the database busy. */
const LIST_TIMEOUT_MS = 5_000;

/**
 * A server of one's own may compile a query that looks costly first (`jit`), which takes a second, or start processes for it,
 * which takes ten milliseconds; nearly all of these queries take less, and others want the processors.
 */
const PLAIN = 'set local jit = off; set local max_parallel_workers_per_gather = 0';

/** @param ms whole milliseconds */
const settingsOf = (ms: number) => `set local statement_timeout = ${ms}; ${PLAIN}`;

/** In one transaction, which begins with what is set in it: each way there and back takes as long as many a list. */
const inReading = <T>(
  db: Kysely<Schema>,
  begin: string,
  read: (on: Kysely<Schema>) => Promise<T>,
): Promise<T> =>
  db.connection().execute(async (on) => {
    const say = (text: string) => sql.raw(text).execute(on);
    try {
      await say(begin);
      const result = await read(on);
      await say('commit');
      return result;
    } catch (error) {
      // Where it cannot be rolled back the connection is gone.
      await say('rollback').catch(() => {});
      throw error;
    }
  });

/** Pages that reach beyond so many rows are read under the time limit, whatever is listed. */
const DEPTH_UNLIMITED_MAX = 10_000;

export const isDeep = ({ offset, limit }: Page): boolean => offset + limit > DEPTH_UNLIMITED_MAX;

/** Says for whom a database is asked. */
class AskedBy implements KyselyPlugin {
  readonly turns: Turns;

  constructor(turns: Turns) {
    this.turns = turns;
  }

  transformQuery({ node }: PluginTransformQueryArgs) {
    return node;
  }

  async transformResult({ result }: PluginTransformResultArgs) {
    return result;
  }
}

/** The same database, asked for somebody: lists that take long wait for a turn, and throw what `turns` throw. */
export const askedBy = (db: Kysely<Schema>, turns: Turns): Kysely<Schema> =>
  db.withPlugin(new AskedBy(turns));

/** Keeps the statements of a transaction within what is allowed. */
class Within implements KyselyPlugin {
  readonly hasTurn: boolean;
  readonly #trx: Kysely<Schema>;
  readonly #budget: Budget;

  constructor(trx: Kysely<Schema>, { budgetMs, hasTurn }: Allowed) {
    this.hasTurn = hasTurn;
    this.#trx = trx;
    this.#budget = new Budget(budgetMs);
  }

  /** Throws NoTimeLeft. */
  transformQuery({ node }: PluginTransformQueryArgs) {
    this.#budget.check();
    return node;
  }

  async transformResult({ result }: PluginTransformResultArgs) {
    const nextMs = this.#budget.next();
    if (nextMs !== undefined)
      await sql`select set_config('statement_timeout', ${String(nextMs)}, true)`.execute(this.#trx);
    return result;
  }
}

const findPlugin = <P extends KyselyPlugin>(
  db: Kysely<Schema>,
  isOne: (plugin: KyselyPlugin) => plugin is P,
): P | undefined => db.getExecutor().plugins.find(isOne);

/** Whether what is read here may yet have to wait for a turn, and is to hold nothing that others want. */
export const isWithoutTurn = (on: Kysely<Schema>): boolean =>
  findPlugin(on, (plugin) => plugin instanceof Within)?.hasTurn === false;

export interface TimeLimit {
  readonly timeoutMs?: number | undefined;
  /** Of its statements; without it each sees what is there when it begins. */
  readonly isolation?: IsolationLevel | undefined;
}

/**
 * Runs what may have to look at many rows for few results; maybe twice. Within a transaction nothing waits for a turn: it has a connection
 * already; and what runs within the time of another list has no time of its own. Throws LIST_TOO_COSTLY, and what the turns of whoever
 * asks throw.
 */
export async function withTimeLimit<T>(
  db: Kysely<Schema>,
  run: (db: Kysely<Schema>) => Promise<T>,
  { timeoutMs = LIST_TIMEOUT_MS, isolation = 'read committed' }: TimeLimit = {},
): Promise<T> {
  if (findPlugin(db, (plugin) => plugin instanceof Within)) return run(db);
  const runWithin = (on: Kysely<Schema>, allowed: Allowed) => run(on.withPlugin(new Within(on, allowed)));
  const turns = findPlugin(db, (plugin) => plugin instanceof AskedBy)?.turns;
  try {
    if (db.isTransaction) {
      await sql.raw(settingsOf(timeoutMs)).execute(db);
      return await runWithin(db, { budgetMs: timeoutMs, hasTurn: true });
    }
    return await readInTurn(turns, timeoutMs, (allowed) => {
      const begin = `start transaction isolation level ${isolation} read only; ${settingsOf(allowed.budgetMs)}`;
      return inReading(db, begin, (on) => runWithin(on, allowed));
    });
  } catch (error) {
    if (!tookTooLong(error)) throw error;
    throw new AppError(
      'LIST_TOO_COSTLY',
      'this list would have to read too many messages; use fewer filters, or continue with a cursor',
      { cause: error },
    );
  }
}
