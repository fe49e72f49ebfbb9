import { fieldsOf, type Program } from '@skerry/protocol';
import { sql } from 'kysely';

/**
 * Text of the filters of one program, as the database writes it: so migration 041 measured them. Of one with more there are none: a thousand
 * programs are read again and again.
 */
const FILTERS_BYTES_MAX = 16 * 1024;

/** What a compute node has to know of a program that runs without being called, without its code, which is part of many. */
export interface Standing extends Pick<Program, 'runtime'> {
  readonly isPersistent: boolean;
  /** It asks to be run when messages come. */
  readonly isTriggered: boolean;
  /** Which ones, as its message has them. */
  readonly filters: readonly unknown[];
}

/**
 * null of a program that waits for calls. Pure. What the database writes is never shorter than this JSON: what is a little too long only
 * there is for `standingColumn` to leave out.
 * @param content of its message
 */
export function standingOf(content: unknown, { runtime }: Pick<Program, 'runtime'>): Standing | null {
  const { persistent, message } = fieldsOf(fieldsOf(content).on);
  const isPersistent = persistent === true;
  const isTriggered = Array.isArray(message);
  if (!isPersistent && !isTriggered) return null;
  const isShort = isTriggered && Buffer.byteLength(JSON.stringify(message)) <= FILTERS_BYTES_MAX;
  return { runtime, isPersistent, isTriggered, filters: isShort ? message : [] };
}

/** The value of `programs.standing`. */
export function standingColumn(standing: Standing) {
  const written = sql`octet_length((${JSON.stringify(standing.filters)}::jsonb)::text)`;
  const json = (value: Standing) => sql`${JSON.stringify(value)}::json`;
  return sql<string>`case when ${written} <= ${sql.lit(FILTERS_BYTES_MAX)} then ${json(standing)} else ${json({ ...standing, filters: [] })} end`;
}
