import { Kysely, PostgresAdapter, PostgresDialect, type Transaction } from 'kysely';
import type pg from 'pg';
import { type Copied, copyIn } from './copy-in.ts';
import { checkValues } from './statements/values.ts';

/** Values that a row of COPY may have; an array becomes an array of texts. */
export type CopyValue = string | number | boolean | null | readonly string[];

/** Rows that are read once, when they are sent: they may be made only then. */
export interface Rows extends Iterable<readonly CopyValue[]> {
  readonly length: number;
}

/** A row of each item, made when it is sent. */
export const rowsFrom = <T>(
  items: readonly T[],
  rowOf: (item: T, index: number) => readonly CopyValue[],
): Rows => ({
  length: items.length,
  *[Symbol.iterator]() {
    for (let index = 0; index < items.length; index++) yield rowOf(items[index]!, index);
  },
});

/** A transaction that also takes rows by COPY, which costs a third less than INSERT. */
export interface Writer<Schema> {
  readonly trx: Transaction<Schema>;
  /**
   * Rows go with the transaction's next statement, or with its commit, and with those of other tables. Many rows go at once: the
   * server writes them while the transaction's body goes on. Throws nothing: what is wrong with a row is told by what comes next.
   * @param columns in the rows' order
   */
  copy(table: string, columns: readonly string[], rows: Rows): void;
}

export type Write<Schema> = <T>(body: (writer: Writer<Schema>) => Promise<T>) => Promise<T>;

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };
const escapeText = (text: string) => text.replace(/[\\\n\r\t]/g, (char) => ESCAPES[char]!);
const quoteMember = (text: string) => `"${text.replace(/["\\]/g, '\\$&')}"`;

/** Throws INVALID_PARAMETERS for what PostgreSQL would not take. */
function formatRow(values: readonly CopyValue[]): string {
  checkValues(values);
  const fields = values.map((value) => {
    if (value === null) return '\\N';
    if (typeof value === 'string') return escapeText(value);
    if (Array.isArray(value)) return escapeText(`{${value.map(quoteMember).join(',')}}`);
    return String(value);
  });
  return `${fields.join('\t')}\n`;
}

/** Rows that are formatted at once. So many are sent when they are given. */
const ROWS_PER_CHUNK = 200;

function* chunksOf(rows: Rows): Generator<string> {
  let texts: string[] = [];
  for (const row of rows) {
    texts.push(formatRow(row));
    if (texts.length < ROWS_PER_CHUNK) continue;
    yield texts.join('');
    texts = [];
  }
  if (texts.length > 0) yield texts.join('');
}

/** Whether the server only refused a statement, and goes on. */
const isRefusal = (error: object) => 'severity' in error && error.severity === 'ERROR';

type Query = (...args: unknown[]) => Promise<unknown>;
/** What the query builder reads of a statement that was not sent. */
const NOTHING = { command: '', rowCount: null, rows: [] };

/** All of them have an end; fails with what failed first. @returns what the last one resolved with */
async function settleAll(statements: readonly Promise<unknown>[]): Promise<unknown> {
  const ends = await Promise.allSettled(statements);
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
  return (ends.at(-1) as PromiseFulfilledResult<unknown>).value;
}

/**
 * One connection, as the query builder sees it. What nobody waits for, its `begin` and rows, goes with the next statement:
 * each way there and back wakes this process and the server, which costs more than most statements do. Where rows are many, that is
 * little beside writing them, and the server begins at once.
 */
function createStatements(client: pg.PoolClient) {
  const query = client.query.bind(client) as Query;
  let mustBegin = false;
  let isOver = false;
  let copies: Copied[] = [];
  /** What was sent before the next statement, and has not failed as far as is known. */
  let ahead: Promise<unknown>[] = [];
  /** Until then rows are being sent, and nothing else may be. */
  let sending = Promise.resolve();
  const sendAhead = (one: Promise<unknown>) => {
    // Its failure is told with the statement's; until then nobody has asked.
    one.catch(() => {});
    ahead.push(one);
  };
  const begin = () => {
    if (mustBegin) sendAhead(query('begin'));
    mustBegin = false;
  };
  const sendCopies = () => {
    sending = sending.then(async () => {
      if (copies.length === 0) return;
      begin();
      const { sent, done } = copyIn(client, copies);
      copies = [];
      sendAhead(done);
      await sent;
    });
    return sending;
  };
  return {
    copy(table: string, columns: readonly string[], rows: Rows): void {
      const names = columns.map((name) => `"${name}"`).join(', ');
      copies.push({ statement: `copy ${table} (${names}) from stdin`, chunks: chunksOf(rows) });
      if (rows.length >= ROWS_PER_CHUNK) void sendCopies();
    },
    query: (async (...args) => {
      const [statement] = args;
      if (statement === 'begin') {
        mustBegin = true;
        return NOTHING;
      }
      const isRollback = statement === 'rollback';
      if (isRollback) copies = [];
      await sendCopies();
      // A commit that fails leaves nothing behind.
      if (isRollback && (mustBegin || isOver)) return NOTHING;
      isOver = statement === 'commit';
      if (isOver && mustBegin) return NOTHING;
      begin();
      // What failed before a rollback is why there is one.
      const before = isRollback ? [] : ahead;
      ahead = [];
      return settleAll([...before, query(...args)]);
    }) satisfies Query,
  };
}

/** Streams of COPY, which others on this pool use, cannot be sent behind other statements: only a transaction of ours is. */
const setPipelining = (client: pg.PoolClient, pipeline: boolean) => Object.assign(client, { pipeline });

/** Runs bodies in transactions of their own, each on a connection that can COPY. */
export function createWrite<Schema>(connections: pg.Pool): Write<Schema> {
  // What is remembered of a database goes by it, so all transactions have the same.
  const adapter = new PostgresAdapter();
  return async (body) => {
    const client = setPipelining(await connections.connect(), true);
    const { copy, query } = createStatements(client);
    // The query builder sees a pool that has this connection alone, and leaves its release to us.
    const connection = { query, release: () => {} } as unknown as pg.PoolClient;
    const pool = { connect: async () => connection, end: async () => {} } as unknown as pg.Pool;
    const dialect = Object.assign(new PostgresDialect({ pool }), { createAdapter: () => adapter });
    const kysely = new Kysely<Schema>({ dialect });
    let failure: unknown;
    try {
      return await kysely.transaction().execute((trx) => body({ trx, copy }));
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      // A connection in an unknown state is not given to the next caller.
      setPipelining(client, false).release(
        failure instanceof Error && !isRefusal(failure) ? failure : undefined,
      );
    }
  };
}
