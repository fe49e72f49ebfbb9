import { HOLD_IDLE_MS, prepared, TIMELINE } from '@skerry/database';
import type { SetDigest } from '@skerry/protocol';
import { sql, type Transaction } from 'kysely';
import { MESSAGES } from './message-set.ts';
import type { Schema } from './schema.ts';
import { outgrownBy } from './schema-version.ts';

/** All who write wait for whoever holds the lock: the server takes it by itself from a process that is frozen between two statements. */
const HOLD = sql`set_config('idle_in_transaction_session_timeout', ${sql.lit(String(HOLD_IDLE_MS))}, true)`;

/** Set by whoever has the lock already: what others take before it is not their statements' time. */
const limit = (statementMs: number | undefined) => sql`set_config('statement_timeout',
  coalesce(${statementMs === undefined ? null : String(statementMs)}::text, current_setting('statement_timeout')), true)`;

/**
 * On which history of the database a statement runs, as SQL: the timeline of the server, its cluster, and this table in it. A promotion and a
 * recovery from an archive begin another timeline, a dump that is restored has another cluster or another table. A standby refuses it.
 */
export const LINEAGE = `concat_ws('-', ${TIMELINE}, (pg_control_system()).system_identifier, 'event_counter'::regclass::oid)`;

/** Where all that is written stands, as of whoever holds the lock. */
export interface Standing {
  /** The number of the last event; 0 before the first. */
  readonly lastSeq: number;
  /** Of all messages. */
  readonly digest: SetDigest;
  /** Of the database (LINEAGE). What was read on another one may be lost, or stand for something else. */
  readonly timeline: string;
}

/** More events than a failover loses, where the clock of the new server is behind that of the one before. */
const LOST_MAX = 1_000_000;

/**
 * The database runs on another history than when the last number was given: what was promoted, or restored, may lack events whose
 * numbers readers remember, and who has read so far would miss those that got the same ones. So the next ones are above all that were
 * given: milliseconds since 1970 are more than any log that began before has.
 * @returns the number after which the next event comes
 */
async function enterTimeline(trx: Transaction<Schema>, timeline: string): Promise<number> {
  const { rows } = await sql<{ last_seq: number }>`
    update event_counter set timeline = ${timeline},
      last_seq = greatest(last_seq + ${sql.lit(LOST_MAX)}, (extract(epoch from clock_timestamp()) * 1000)::bigint)
    returning last_seq`.execute(trx);
  return rows[0]!.last_seq;
}

/** What PostgreSQL says of a text that is no number (22P02, invalid_text_representation). */
const NO_NUMBER = '22P02';
const OUT_OF_TURN = 'out of turn: somebody else wrote in between';

/**
 * Fails where not all stands so, and with it what was sent behind the lock: the server passes over it, as over all that follows an error in
 * a transaction. Asked of what is locked: in the statement that waits for the lock it would be asked before.
 */
const requireStanding = (expected: Standing | undefined) =>
  expected
    ? sql`, (case when (last_seq, known, timeline) = (${expected.lastSeq}::bigint, ${expected.timeline}, ${expected.timeline})
        and (count, sum) = (${expected.digest.count}::bigint, ${expected.digest.digest})
        then '1' else ${sql.lit(OUT_OF_TURN)} end)::int`
    : sql``;

/** Whether all stood otherwise than the lock was to find it. */
export const isOutOfTurn = (error: unknown): boolean =>
  error instanceof Error &&
  'code' in error &&
  error.code === NO_NUMBER &&
  error.message.includes(OUT_OF_TURN);

/**
 * Takes the one row that numbers events, until the transaction ends. A plain sequence would let a reader see number 8 while
 * the transaction of number 7 is still open, and miss 7 for ever. Rows that are locked are read as the one before left
 * them; another table in the same statement would be read as of before the wait.
 * Throws DATABASE_INCOMPATIBLE where a newer release has migrated the database.
 * @param statementMs what each later statement of the transaction may take, where it is not what the session says
 * @param expected how all must stand (isOutOfTurn)
 */
export async function lockWrites(
  trx: Transaction<Schema>,
  statementMs?: number,
  expected?: Standing,
): Promise<Standing> {
  const { rows } = await sql<{
    last_seq: number;
    schema_version: number;
    known: string;
    timeline: string;
    count: number;
    sum: string;
  }>`${prepared()}
    with locked as materialized (
      select last_seq, schema_version, timeline as known, ${sql.raw(LINEAGE)} as timeline, d.count, d.sum, ${HOLD}, ${limit(statementMs)}
      from event_counter join digests d on d.name = ${sql.lit(MESSAGES)}
      for update)
    select *${requireStanding(expected)} from locked`.execute(trx);
  const { last_seq, schema_version: version, known, timeline, count, sum } = rows[0]!;
  const outgrown = outgrownBy(version);
  if (outgrown) throw outgrown;
  const lastSeq = known === timeline ? last_seq : await enterTimeline(trx, timeline);
  return { lastSeq, digest: { count, digest: sum }, timeline };
}
