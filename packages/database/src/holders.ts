import { type Kysely, sql } from 'kysely';
import type pg from 'pg';

/** As a node's connections call themselves to the server, where the connection string says nothing else. */
export const APPLICATION_NAME = 'skerry-core';
/** And those that `mayHoldLong` was called for. */
const PATIENT_NAME = `${APPLICATION_NAME}: waits for something else`;

/** A program that says nothing for so long, while others wait for what its transaction locks, counts as frozen. */
export const HOLD_IDLE_MS = 5_000;
/** A live program that sends rows waits for nobody at most looks, and never at so many in a row, a second apart. */
const LOOKS = 3;

/** One whose program has said nothing since `since`, seconds since 1970 by the server's clock. */
interface Holder {
  readonly pid: number;
  readonly since: string;
  readonly event: string;
  readonly silent_ms: number;
}

/**
 * Transactions of this role's own programs that others wait for, and which wait for their program, between two statements or in the
 * middle of one. Asked for all who wait, since a pooler tells nobody which connection is theirs.
 */
const ASK = `
  select distinct held.pid, extract(epoch from held.state_change)::text as since, held.wait_event as event,
    (extract(epoch from clock_timestamp() - held.state_change) * 1000)::float8 as silent_ms
  from pg_stat_activity waits
  cross join lateral unnest(pg_blocking_pids(waits.pid)) as blocking (pid)
  join pg_stat_activity held on held.pid = blocking.pid
  where waits.wait_event_type = 'Lock' and waits.datname = current_database()
    and held.usename = current_user and held.application_name = current_setting('application_name')
    and held.wait_event in ('ClientRead', 'ClientWrite')`;

/** By the same words, since it may have gone on meanwhile. */
const END = `
  select pg_terminate_backend(pid) as ended from pg_stat_activity
  where pid = $1 and extract(epoch from state_change)::text = $2 and wait_event = $3`;

/**
 * Says of a transaction that it waits for something else than the database, such as an object store. Whoever waits for what it locks
 * leaves it alone, up to the limit of idle transactions.
 */
export async function mayHoldLong<Schema>(trx: Kysely<Schema>): Promise<void> {
  await sql`set local application_name = ${sql.lit(PATIENT_NAME)}`.execute(trx);
}

/**
 * Ends transactions that hold up others because their program is frozen, or gone without a word. PostgreSQL's own limit
 * (`idle_in_transaction_session_timeout`) is for those between two statements alone: one that waits for the rows of its COPY it would
 * wait for without end, deaf to every other limit.
 */
export class Holders {
  /** How often in a row each was seen to wait for its program. */
  #seen: ReadonlyMap<string, number> = new Map();

  /** To be called about every second while somebody waits. @returns those that it ended, in words */
  async look(client: Pick<pg.Client, 'query'>): Promise<string[]> {
    const { rows } = await client.query<Holder>(ASK);
    const keyOf = ({ pid, since, event }: Holder) => `${pid} ${since} ${event}`;
    this.#seen = new Map(rows.map((one) => [keyOf(one), (this.#seen.get(keyOf(one)) ?? 0) + 1]));
    const ended: string[] = [];
    for (const one of rows) {
      if (one.silent_ms < HOLD_IDLE_MS || this.#seen.get(keyOf(one))! < LOOKS) continue;
      const { rows: told } = await client.query(END, [one.pid, one.since, one.event]);
      if (told[0]?.ended)
        ended.push(
          `connection ${one.pid} held up others, and its program has said nothing for ${Math.round(one.silent_ms / 1_000)} s`,
        );
    }
    return ended;
  }
}
