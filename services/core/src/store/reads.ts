import type { ConnectionTurns, Database, ReadOutcome, Standby } from '@skerry/database';
import type { Metrics } from '@skerry/kit';
import type { Kysely } from 'kysely';
import type { PoolClient } from 'pg';
import type { Schema } from './schema.ts';
import { SCHEMA_VERSION } from './schema-version.ts';

/** Reads that a standby may answer. */
export interface Reads {
  readonly db: Kysely<Schema>;
  /** The primary, for what is read once for many. */
  readonly common: Kysely<Schema>;
  /** Within `body`, what is read from `db` may come from a standby that has all events up to this number. */
  run<T>(event: number, body: () => T): T;
  /** The number, within `run` with a standby: what is read may know of nothing after it. */
  after(): number | undefined;
}

export interface ReadsOptions {
  readonly database: Pick<Database<Schema>, 'pool' | 'kysely'> & {
    readonly common: Kysely<Schema>;
    /** Whose share of a database's connections it is that a read takes. */
    readonly askers: { open(connections: number): { readonly each: ConnectionTurns } };
  };
  readonly standby: Standby | undefined;
  readonly metrics: { readonly own: Metrics };
}

/** Before every event: whoever is there is never far enough. */
const NOWHERE = -1;

/** A standby that has not come to the last migration lacks what this code reads. */
const readPlace = async (client: PoolClient) => {
  const { rows } = await client.query<{ last_seq: number; schema_version: number }>(
    'select last_seq, schema_version from event_counter',
  );
  return rows[0]!.schema_version < SCHEMA_VERSION ? NOWHERE : rows[0]!.last_seq;
};

/** Without a standby everything is read from the primary. */
export function createReads({ database, standby, metrics }: ReadsOptions): Reads {
  const { common } = database;
  if (!standby) return { db: database.kysely, common, run: (_event, body) => body(), after: () => undefined };
  const counter = metrics.own.counter(
    'skerry_standby_reads_total',
    'queries that a standby might answer: it did, or the primary since it was behind or failed',
    ['outcome'],
  );
  const note = (outcome: ReadOutcome) => counter.inc({ outcome });
  return {
    db: standby.createDatabase<Schema>(database.pool, {
      ...{ readPlace, note },
      turns: database.askers.open(standby.connectionsMax).each,
    }),
    common,
    run: (event, body) => standby.run(event, body),
    after: () => standby.wanted,
  };
}
