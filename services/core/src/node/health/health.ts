import type { DiskReserve } from '@skerry/database';
import { cached, type Logger, within } from '@skerry/kit';
import { type Kysely, sql } from 'kysely';
import type { ClockView, SyncView } from '../../peers/sync/view.ts';
import type { Schema } from '../../store/schema.ts';
import { decideHealth, type HealthVerdict } from './decide.ts';

/** A part that does not answer within this is not well; the question itself goes on and is not asked again meanwhile. */
const CHECK_TIMEOUT_MS = 2_000;
/** However many ask, the parts are asked this often at most. */
const HEALTH_TTL_MS = 1_000;

export interface HealthOptions {
  readonly db: Kysely<Schema>;
  readonly pipeline: { readonly queued: number; readonly queuedMax: number };
  readonly sync: {
    view(): Pick<SyncView, 'state'> & { readonly clock: Pick<ClockView, 'state' | 'offset_ms' | 'clocks'> };
  };
  readonly trust: { problem(): string | undefined };
  readonly reserve: DiskReserve;
  /** Ends when the node stops. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  readonly timeoutMs?: number;
}

export type Health = () => Promise<HealthVerdict>;

/** Whether the node can do its work, and why not. Always answers, and soon. */
export function createHealth(options: HealthOptions): Health {
  const { db, pipeline, sync, trust, reserve, signal, log, timeoutMs = CHECK_TIMEOUT_MS } = options;
  const askDatabase = cached(HEALTH_TTL_MS, async () => {
    try {
      await sql`select 1`.execute(db);
      return undefined;
    } catch (error) {
      log.debug({ err: error }, 'the database failed the health check');
      return 'the database does not answer';
    }
  });
  return async () => {
    const late = `the database did not answer within ${timeoutMs} ms`;
    const databaseFailure = await within(timeoutMs, askDatabase(), late);
    const { queued, queuedMax } = pipeline;
    const { state: syncState, clock } = sync.view();
    return decideHealth({
      isStopping: signal.aborted,
      databaseFailure,
      disk: reserve.facts,
      hasRoom: reserve.hasRoom,
      queued,
      queuedMax,
      syncState,
      clock: { state: clock.state, offsetMs: clock.offset_ms, clocks: clock.clocks },
      trustProblem: trust.problem(),
    });
  };
}
