import { type RawBuilder, sql } from 'kysely';
import type { Read } from './parameters.ts';

export type Condition = RawBuilder<unknown>;
export const allOf = (conditions: readonly Condition[]) => sql.join(conditions, sql` and `);
export const anyOf = (column: string, values: readonly unknown[], type = 'text') =>
  sql`${sql.ref(column)} = any(${values}::${sql.raw(type)}[])`;

/** How a filter is matched against a column. With none of these the column is one of the filter's values. */
export interface Matching {
  /** The values' type where they are no texts. */
  readonly type?: 'integer';
  /** The column is an array, and has one of the values. */
  readonly many?: true;
  /** The value is one number, which the column is compared with. */
  readonly bound?: '>=' | '<';
  /** @param column such as x.shape */
  readonly fits?: (column: Condition, values: readonly string[]) => Condition;
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

/** @param column such as x.channel */
export function conditionOf(
  { type, many, bound, fits }: Matching,
  column: string,
  value: number | readonly (string | number)[],
): Condition {
  const at = sql.ref(column);
  if (bound) return sql`${at} ${sql.raw(bound)} ${value}::float8`;
  const values = value as readonly string[];
  if (fits) return fits(at, values);
  return many ? sql`${at} && ${values}::text[]` : anyOf(column, values, type);
}
