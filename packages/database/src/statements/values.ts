import { AppError } from '@skerry/protocol';
import { PrimaryClient, type Reached } from '../hosts.ts';
import { type Named, NamedQuery, type Shapes } from './named-query.ts';
import { isOutdated, Prepared } from './prepared.ts';

/**
 * From here on a number is milliseconds since 1970, a size or a count, and whole. Times in seconds and measurements may
 * be fractions, and stay far below.
 */
const WHOLE_FROM = 10 ** 11;

const LONE_SURROGATE = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g;
const REPLACEMENT = '\uFFFD';

/** Why PostgreSQL would not take the value, or not as it is; undefined where it would. */
function findFault(value: unknown): string | undefined {
  if (typeof value === 'string')
    return value.includes('\0') ? 'a text that holds a NUL character' : undefined;
  if (typeof value === 'number') {
    if (Number.isNaN(value)) return 'NaN';
    // Infinity stands for a range of times without an end.
    if (Number.isFinite(value) && Math.abs(value) >= WHOLE_FROM && !Number.isInteger(value))
      return `the fraction ${value}`;
    return undefined;
  }
  if (Array.isArray(value)) {
    for (const one of value) {
      const fault = findFault(one);
      if (fault !== undefined) return fault;
    }
  }
  return undefined;
}

/** Throws INVALID_PARAMETERS. What PostgreSQL does not take today it does not take tomorrow: no later try helps. */
export function checkValue(value: unknown): void {
  const fault = findFault(value);
  if (fault !== undefined) throw new AppError('INVALID_PARAMETERS', `the database cannot hold ${fault}`);
}

/** A text that came from elsewhere, such as a reason that a stranger's server gave, as a column can hold it. */
export const storableText = (text: string): string =>
  text.replaceAll('\0', REPLACEMENT).replace(LONE_SURROGATE, REPLACEMENT);

/** JSON for a jsonb column, which holds neither NUL characters nor lone surrogates. */
export const storableJson = (value: unknown): string =>
  JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'string' ? storableText(member) : member,
  );

type Query = (...args: unknown[]) => unknown;
/** As `pg.Pool.query` asks. */
type Callback = (error: unknown, result?: unknown) => void;

/** A client that refuses, before it is sent, what PostgreSQL would refuse after, and keeps the plans of statements that ask for it (`prepared`). */
export class CheckingClient extends PrimaryClient {
  readonly prepared = new Prepared();
  readonly #shapes: Shapes = new Map();

  constructor(config?: string | Reached) {
    super(config);
    const query = this.query.bind(this) as Query;
    Object.assign(this, {
      query: (statement: unknown, values?: unknown, callback?: Callback) => {
        const given = Array.isArray(values) ? values : (statement as { values?: unknown } | null)?.values;
        if (Array.isArray(given)) given.forEach(checkValue);
        const name =
          typeof statement === 'string' && Array.isArray(values) && this.prepared.nameOf(statement);
        if (!name) return query(statement, values, callback);
        const result = this.#queryPrepared(query, { name, text: statement, values: values as unknown[] });
        if (!callback) return result;
        result.then((found) => callback(undefined, found), callback);
        return undefined;
      },
    });
  }

  async #queryPrepared(query: Query, named: Named): Promise<unknown> {
    // Not waited for: what is given meanwhile would be sent before the statement.
    if (this.prepared.areOld()) (query('discard plans') as Promise<unknown>).catch(() => {});
    try {
      return await query((callback: Callback) => new NamedQuery(named, this.#shapes, callback));
    } catch (error) {
      // The next connection prepares it as it is now.
      if (isOutdated(error as object)) this.end().catch(() => {});
      throw error;
    }
  }
}
