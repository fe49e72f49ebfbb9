import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type ConnectionProvider,
  type Dialect,
  Kysely,
  PostgresAdapter,
  PostgresDialect,
  PostgresQueryCompiler,
  Transaction,
} from 'kysely';
import type pg from 'pg';
import { type Copied, copyIn } from './copy-in.ts';
import { checkValue } from './statements/values.ts';

/** Values that a row of COPY may have; an array becomes an array of texts. */
export type CopyValue = string | number | boolean | null | readonly string[];

/** Rows that are read once, when they are sent: they may be made only then. */
export interface Rows extends Iterable<readonly CopyValue[]> {
  readonly length: number;
}

class RowsFrom<T> implements Rows {
  readonly #items: readonly T[];
  readonly #rowOf: (item: T, index: number) => readonly CopyValue[];

  constructor(items: readonly T[], rowOf: (item: T, index: number) => readonly CopyValue[]) {
    this.#items = items;
    this.#rowOf = rowOf;
  }

  get length(): number {
    return this.#items.length;
  }

  // Of the class, not made for each: V8 makes a map for each function that generates, which is an old object and keeps the function with
  // all it refers to, here a batch of messages, until the whole heap is collected.
  *[Symbol.iterator]() {
    for (let index = 0; index < this.#items.length; index++) yield this.#rowOf(this.#items[index]!, index);
  }
}

/** A row of each item, made when it is sent. */
export const rowsFrom = <T>(
  items: readonly T[],
  rowOf: (item: T, index: number) => readonly CopyValue[],
): Rows => new RowsFrom(items, rowOf);

/** A transaction that also takes rows by COPY, which costs a third less than INSERT. */
export interface Writer<Schema> {
  /**
   * Its statements go to the server in the order in which they are given, whether or not one waits for those before. A failure is
   * that of all that follows, and of the commit.
   */
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
/** What is escaped in a text, or refused. Most have nothing of it, and looking is cheaper than replacing. */
const SPECIAL = /[\0\\\n\r\t]/;
const quoteMember = (text: string) => `"${text.replace(/["\\]/g, '\\$&')}"`;

function formatText(text: string): string {
  if (!SPECIAL.test(text)) return text;
  checkValue(text);
  return text.replace(/[\\\n\r\t]/g, (char) => ESCAPES[char]!);
}

function formatField(value: CopyValue): string {
  if (value === null) return '\\N';
  if (typeof value === 'string') return formatText(value);
  if (typeof value === 'object')
    return value.length === 0 ? '{}' : formatText(`{${value.map(quoteMember).join(',')}}`);
  checkValue(value);
  return String(value);
}

/** Throws INVALID_PARAMETERS for what PostgreSQL would not take. */
function formatRow(values: readonly CopyValue[]): string {
  let row = '';
  for (let at = 0; at < values.length; at++) row += (at === 0 ? '' : '\t') + formatField(values[at]!);
  return `${row}\n`;
}

/** Rows that are formatted at once. So many are sent when they are given. */
const ROWS_PER_CHUNK = 200;

function* chunksOf(rows: Rows): Generator<string> {
  let [chunk, count] = ['', 0];
  for (const row of rows) {
    chunk += formatRow(row);
    if (++count % ROWS_PER_CHUNK !== 0) continue;
    yield chunk;
    chunk = '';
  }
  if (chunk !== '') yield chunk;
}

/** What the server says of all that follows a failure in its transaction (SQLSTATE in_failed_sql_transaction). */
const isAborted = (error: unknown) => error instanceof Error && 'code' in error && error.code === '25P02';

/** Whether the server only refused a statement, and goes on. */
const isRefusal = (error: object) => 'severity' in error && error.severity === 'ERROR';

type Query = (...args: unknown[]) => Promise<{ readonly command?: string }>;

const ignore = () => {};

/**
 * The statements of one transaction, in the order in which they are given. What nobody waits for, its `begin` and rows, goes with the
 * next one: each way there and back wakes this process and the server, which costs more than most statements do. Where rows are many,
 * that is little beside writing them, and the server begins at once. Whatever fails, all that follows fails with that.
 */
class Statements {
  readonly #client: pg.PoolClient;
  readonly #ask: Query;
  #hasBegun = false;
  #isOver = false;
  #copies: Copied[] = [];
  /** Until then rows are being sent, and nothing else may be. */
  #sending = Promise.resolve();
  /** Of what follows the server only says that the transaction has failed (25P02). */
  #failure: { readonly error: unknown } | undefined;

  constructor(client: pg.PoolClient) {
    this.#client = client;
    this.#ask = client.query.bind(client) as Query;
  }

  readonly copy = (table: string, columns: readonly string[], rows: Rows): void => {
    const names = columns.map((name) => `"${name}"`).join(', ');
    this.#copies.push({ statement: `copy ${table} (${names}) from stdin`, chunks: chunksOf(rows) });
    if (rows.length >= ROWS_PER_CHUNK) void this.#sendCopies();
  };

  readonly query: Query = async (...args) => {
    await this.#sendCopies();
    this.#checkOpen();
    this.#begin();
    return this.#note(() => this.#ask(...args));
  };

  /** Throws what failed, whoever waited for it. */
  async commit(): Promise<void> {
    await this.#sendCopies();
    this.#checkOpen();
    // A commit that fails leaves nothing behind.
    this.#isOver = true;
    if (!this.#hasBegun) return;
    const { command } = await this.#note(() => this.#ask('commit'));
    if (this.#failure) throw this.#failure.error;
    if (command !== 'COMMIT') throw new Error(`the database answered ${command} to a commit`);
  }

  async rollback(): Promise<void> {
    this.#copies = [];
    await this.#sending;
    const isOver = this.#isOver;
    this.#isOver = true;
    if (this.#hasBegun && !isOver) await this.#ask('rollback');
  }

  /** Nothing follows what failed, as far as that is known, and nothing of this transaction is sent in another one. */
  #checkOpen(): void {
    if (this.#failure) throw this.#failure.error;
    if (this.#isOver) throw new Error('the transaction is over');
  }

  #begin(): void {
    if (!this.#hasBegun) this.#note(() => this.#ask('begin')).catch(ignore);
    this.#hasBegun = true;
  }

  #sendCopies(): Promise<void> {
    const copies = this.#copies;
    if (copies.length === 0) return this.#sending;
    this.#copies = [];
    this.#sending = this.#sending.then(async () => {
      if (this.#isOver) return;
      this.#begin();
      const { sent, done } = copyIn(this.#client, copies);
      this.#note(() => done).catch(ignore);
      await sent;
    });
    return this.#sending;
  }

  /** What is refused before it is sent is noted at once. */
  async #note<T>(send: () => Promise<T>): Promise<T> {
    try {
      return await send();
    } catch (error) {
      // The failure itself came before it, and may be on its way through more hands.
      if (isAborted(error) && !this.#failure) await nextTurn();
      this.#failure ??= { error };
      throw this.#failure.error;
    }
  }
}

/** Streams of COPY, which others on this pool use, cannot be sent behind other statements: only a transaction of ours is. */
const setPipelining = (client: pg.PoolClient, pipeline: boolean) => Object.assign(client, { pipeline });

/** Where what fails, or cannot be rolled back, is more than a refusal: a connection in an unknown state is not given to the next caller. */
const whyUnsure = (errors: readonly unknown[]) =>
  errors.find((error): error is Error => error instanceof Error && !isRefusal(error));

/** Runs bodies in transactions of their own, each on a connection that can COPY. */
export function createWrite<Schema>(connections: pg.Pool): Write<Schema> {
  // What is remembered of a database goes by its adapter, and a compiler is a hundred functions: all transactions have the same.
  const [adapter, compiler] = [new PostgresAdapter(), new PostgresQueryCompiler()];
  return async (body) => {
    const client = setPipelining(await connections.connect(), true);
    const statements = new Statements(client);
    // The query builder sees a pool that has this connection alone, and leaves its release to us.
    const alone = { query: statements.query, release: ignore } as unknown as pg.PoolClient;
    const pool = { connect: async () => alone, end: async () => {} } as unknown as pg.Pool;
    const dialect = Object.assign(new PostgresDialect({ pool }), {
      createAdapter: () => adapter,
      createQueryCompiler: () => compiler,
    });
    let unsure: Error | undefined;
    try {
      return await inOneTransaction(dialect, async (trx: Transaction<Schema>) => {
        const result = await body({ trx, copy: statements.copy });
        await statements.commit();
        return result;
      });
    } catch (error) {
      const left = await statements.rollback().then(ignore, (failure: unknown) => failure);
      unsure = whyUnsure([error, left]);
      throw error;
    } finally {
      setPipelining(client, false).release(unsure);
    }
  };
}

/** The query builder's own transactions have each statement wait for the answer to the one before: here they go as they are given. */
function inOneTransaction<Schema, T>(
  dialect: Dialect,
  run: (trx: Transaction<Schema>) => Promise<T>,
): Promise<T> {
  const config = { dialect };
  const executor = new Kysely<Schema>(config).getExecutor();
  return executor.provideConnection((connection) => {
    const provider: ConnectionProvider = { provideConnection: (consumer) => consumer(connection) };
    const driver = dialect.createDriver();
    return run(
      new Transaction<Schema>({
        config,
        dialect,
        driver,
        executor: executor.withConnectionProvider(provider),
      }),
    );
  });
}
