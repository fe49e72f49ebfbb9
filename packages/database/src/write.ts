import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Kysely, PostgresAdapter, PostgresDialect, type Transaction } from 'kysely';
import type pg from 'pg';
import { from } from 'pg-copy-streams';
import { checkValues } from './statements/values.ts';

/** Values that a row of COPY may have; an array becomes an array of texts. */
export type CopyValue = string | number | boolean | null | readonly string[];

/** A transaction that also takes rows by COPY, which costs a third less than INSERT. */
export interface Writer<Schema> {
  readonly trx: Transaction<Schema>;
  /** @param columns in the rows' order */
  copy(table: string, columns: readonly string[], rows: readonly (readonly CopyValue[])[]): Promise<void>;
}

export type Write<Schema> = <T>(body: (writer: Writer<Schema>) => Promise<T>) => Promise<T>;

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };
const escapeText = (text: string) => text.replace(/[\\\n\r\t]/g, (char) => ESCAPES[char]!);
const quoteMember = (text: string) => `"${text.replace(/["\\]/g, '\\$&')}"`;

/** One row in COPY's text format (PostgreSQL documentation, "COPY", File Formats). */
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

/** Rows that are formatted at once: between them the connection takes what there is. */
const ROWS_PER_CHUNK = 200;

function* chunksOf(rows: readonly (readonly CopyValue[])[]): Generator<string> {
  for (let at = 0; at < rows.length; at += ROWS_PER_CHUNK)
    yield rows
      .slice(at, at + ROWS_PER_CHUNK)
      .map(formatRow)
      .join('');
}

/** Whether the server only refused a statement, and goes on. */
const isRefusal = (error: object) => 'severity' in error && error.severity === 'ERROR';

/** Runs bodies in transactions of their own, each on a connection that can COPY. */
export function createWrite<Schema>(pool: pg.Pool): Write<Schema> {
  // What is remembered of a database goes by it, so all transactions have the same.
  const adapter = new PostgresAdapter();
  return async (body) => {
    const client = await pool.connect();
    // The query builder sees a pool that has this connection alone, and leaves its release to us.
    const connection = { query: client.query.bind(client), release: () => {} } as unknown as pg.PoolClient;
    const dialect = new PostgresDialect({
      pool: { connect: async () => connection, end: async () => {} } as unknown as pg.Pool,
    });
    dialect.createAdapter = () => adapter;
    const kysely = new Kysely<Schema>({ dialect });
    let failure: unknown;
    try {
      return await kysely.transaction().execute((trx) =>
        body({
          trx,
          copy: (table, columns, rows) =>
            pipeline(
              Readable.from(chunksOf(rows)),
              client.query(
                from(`copy ${table} (${columns.map((name) => `"${name}"`).join(', ')}) from stdin`),
              ),
            ),
        }),
      );
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      // A connection in an unknown state is not given to the next caller.
      client.release(failure instanceof Error && !isRefusal(failure) ? failure : undefined);
    }
  };
}
