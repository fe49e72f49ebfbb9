import type { Database, ReadOutcome, Standby } from '@skerry/database';
import type { Metrics } from '@skerry/kit';
import type { Kysely } from 'kysely';
import type { PoolClient } from 'pg';
import type { Schema } from './schema.ts';

/** Reads that a standby may answer. */
export interface Reads {
  readonly db: Kysely<Schema>;
  /** Within `body`, what is read from `db` may come from a standby that has all events up to this number. */
  run<T>(event: number, body: () => T): T;
  /** The number, within `run` with a standby: what is read may know of nothing after it. */
  after(): number | undefined;
}

export interface ReadsOptions {
  readonly database: Database<Schema>;
  readonly standby: Standby | undefined;
  readonly metrics: { readonly own: Metrics };
}

const readPlace = async (client: PoolClient) =>
  (await client.query<{ last_seq: number }>('select last_seq from event_counter')).rows[0]!.last_seq;

/** Without a standby everything is read from the primary. */
export function createReads({ database, standby, metrics }: ReadsOptions): Reads {
  if (!standby) return { db: database.kysely, run: (_event, body) => body(), after: () => undefined };
  const counter = metrics.own.counter(
    'skerry_standby_reads_total',
    'queries that a standby might answer: it did, or the primary since it was behind or failed',
    ['outcome'],
  );
  const note = (outcome: ReadOutcome) => counter.inc({ outcome });
  return {
    db: standby.createDatabase<Schema>(database.pool, { readPlace, note }),
    run: (event, body) => standby.run(event, body),
    after: () => standby.wanted,
  };
}
