import { LIMITS } from '@skerry/protocol';
import { type RawBuilder, sql } from 'kysely';

/** Protocol's effectiveTime of a row of `messages`. @param alias of the table in the query */
export function effectiveTimeOf(alias: string): RawBuilder<number> {
  const [time, noted] = [sql.ref(`${alias}.time`), sql.ref(`${alias}.noted_ms`)];
  return sql<number>`case when ${isLateRow(alias)} then ${noted} / 1000::float8 else ${time} end`;
}

/** Protocol's isLate of a row of `messages`. */
export const isLateRow = (alias: string): RawBuilder<boolean> =>
  sql<boolean>`coalesce(${sql.ref(`${alias}.noted_ms`)} > (${sql.ref(`${alias}.time`)} + ${sql.lit(LIMITS.lateSeconds)}) * 1000, false)`;
