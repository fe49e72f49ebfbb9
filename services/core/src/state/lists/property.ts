import { type RawBuilder, sql } from 'kysely';
import type { Read } from './parameters.ts';

export type Condition = RawBuilder<unknown>;
export const allOf = (conditions: readonly Condition[]) => sql.join(conditions, sql` and `);
export const anyOf = (column: string, values: readonly unknown[], type = 'text') =>
  sql`${sql.ref(column)} = any(${values}::${sql.raw(type)}[])`;

/** A row, by the columns of its message: `row('type')`. */
export type Row = (column: string) => Condition;
export const rowOf =
  (alias: string): Row =>
  (column) =>
    sql.ref(`${alias}.${column}`);

/** How a filter is matched against a column. With none of these the column is one of the filter's values. */
export interface Matching {
  /** What is compared in the place of the column; null where the message has no such thing. */
  readonly at?: (row: Row) => Condition;
  /** The values' type where they are no texts. */
  readonly type?: 'integer';
  /** The column is an array, and has one of the values. */
  readonly many?: true;
  /** The value is one number, which the column is compared with. */
  readonly bound?: '>=' | '<';
  /** What a table says, to which the column leads. */
  readonly led?: {
    /** @param column such as x.shape */
    readonly fits: (column: Condition, values: readonly string[]) => Condition;
    /** The values that there are of it, an array, one of which has to be asked for: what a row in memory is read with. */
    readonly values: (column: Condition) => Condition;
  };
}

/** What rows are filtered by. `Column` is where it stands in each of the tables that the rows come from. */
export interface Filterable<Column> extends Matching, Read {
  readonly column: Column;
}

type ValueOf<P> = P extends { readonly bound: string }
  ? number
  : readonly (P extends { readonly type: 'integer' } ? number : string)[];

/** What a list may be filtered by: every given property must fit, by any of its values. */
export type FilterOf<Table> = { readonly [N in keyof Table]?: ValueOf<Table[N]> | undefined };

/** @param alias of the table that the column is in */
export function conditionOf(
  { type, many, bound, led, at: made }: Matching,
  alias: string,
  column: string,
  value: number | readonly (string | number)[],
): Condition {
  const row = rowOf(alias);
  const at = made ? made(row) : row(column);
  if (bound) return sql`${at} ${sql.raw(bound)} ${value}::float8`;
  const values = value as readonly string[];
  if (led) return led.fits(at, values);
  if (many) return sql`${at} && ${values}::text[]`;
  return made ? sql`${at} = any(${values}::text[])` : anyOf(`${alias}.${column}`, values, type);
}

/** `conditionOf` for a value that is in memory. */
export function testOf(
  { bound, many, led }: Matching,
  value: number | readonly (string | number)[],
): (held: unknown) => boolean {
  if (bound) {
    const limit = value as number;
    const isWithin = bound === '<' ? (held: number) => held < limit : (held: number) => held >= limit;
    return (held) => typeof held === 'number' && isWithin(held);
  }
  const values: ReadonlySet<unknown> = new Set(value as readonly unknown[]);
  return many || led
    ? (held) => Array.isArray(held) && held.some((one) => values.has(one))
    : (held) => values.has(held);
}
