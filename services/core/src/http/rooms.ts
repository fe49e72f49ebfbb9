import type { Kysely } from 'kysely';
import type { Schema } from '../db/schema.ts';
import type { EventLog } from '../events/log.ts';
import type { Files } from '../files/files.ts';
import type { Indexer } from '../indexer/indexer.ts';
import type { Pipeline } from '../messages/pipeline.ts';

/** What the routes may use. */
export interface Rooms {
  readonly db: Kysely<Schema>;
  readonly pipeline: Pipeline;
  readonly events: EventLog;
  readonly files: Files;
  readonly indexer: Indexer;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Ends when the node stops. */
  readonly signal: AbortSignal;
  readonly settings: RouteSettings;
}

export interface RouteSettings {
  readonly nodeName: string;
  /** How long POST /instances waits for the scheduler before it answers without an address. */
  readonly allocationWaitMs: number;
  readonly uploadLimitBytes: number;
  readonly maxStreams: number;
}
