import type { DiskReserve } from '@skerry/database';
import { cached, type Logger, type Since, within } from '@skerry/kit';
import { type Kysely, sql } from 'kysely';
import type { ClockView, SyncView } from '../../peers/sync/view.ts';
import type { Schema } from '../../store/schema.ts';
import { type Check, decideHealth, type HealthVerdict } from './decide.ts';
import type { WriteProbe } from './write-probe.ts';

/** A part that does not answer within this is not well; the question itself goes on and is not asked again meanwhile. */
const CHECK_TIMEOUT_MS = 2_000;
/** However many ask, the parts are asked this often at most. */
const HEALTH_TTL_MS = 1_000;

export interface HealthOptions {
  readonly db: Kysely<Schema>;
  /** Why the database refuses writes, in words; undefined where it takes them. */
  readonly writes: { readonly refusal: string | undefined };
  readonly pipeline: { readonly queued: number; readonly queuedMax: number; readonly writingMs: number };
  readonly sync: {
    view(): Pick<SyncView, 'state'> & { readonly clock: Pick<ClockView, 'state' | 'offset_ms' | 'clocks'> };
  };
  /** Why the clock may be wrong by what the node has, in words. */
  readonly doubtClock?: (() => string | undefined) | undefined;
  readonly trust: { problem(): string | undefined };
  /** What is wrong with the processes of the node, in words: roles that none fills, or more of them than the database has room for. */
  readonly adviseOnProcesses?: (() => string | undefined) | undefined;
  /** What is wrong with the chains that the node reads, in words. */
  readonly adviseOnChains?: (() => Promise<string | undefined>) | undefined;
  readonly reserve: DiskReserve;
  readonly files?: Pick<WriteProbe, 'failure' | 'absence' | 'damaged'> | undefined;
  /** Ends when the node stops. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  readonly timeoutMs?: number;
  /** Since when what is not ok is so, by the names of checks. */
  readonly since: Since;
}

export type Health = () => Promise<HealthVerdict>;

/** The name of the whole, among those of checks. */
const ALL = '';

/** Adds since when what is not ok is so. */
function withSince(verdict: HealthVerdict, since: Since): HealthVerdict {
  const dated = <C extends Pick<Check, 'status'>>(name: string, check: C): C => {
    const sinceMs = since.note(name, check.status !== 'ok');
    return sinceMs === null ? check : { ...check, since_ms: sinceMs };
  };
  const checks = Object.fromEntries(
    Object.entries(verdict.checks).map(([name, check]) => [name, dated(name, check)]),
  ) as unknown as HealthVerdict['checks'];
  return { ...dated(ALL, verdict), checks };
}

/** Whether the node can do its work, and why not. Always answers, and soon. */
export function createHealth(options: HealthOptions): Health {
  const { db, writes, pipeline, sync, trust, doubtClock, adviseOnProcesses, reserve, files, signal, log } =
    options;
  const { since, timeoutMs = CHECK_TIMEOUT_MS, adviseOnChains = async () => undefined } = options;
  const askDatabase = cached(HEALTH_TTL_MS, async () => {
    try {
      const { rows } = await sql<{ is: boolean }>`
        select current_setting('transaction_read_only') = 'on' as is`.execute(db);
      return { failure: undefined, isReadOnly: rows[0]?.is === true };
    } catch (error) {
      log.debug({ err: error }, 'the database failed the health check');
      return { failure: 'the database does not answer', isReadOnly: false };
    }
  });
  return async () => {
    const late = { failure: `the database did not answer within ${timeoutMs} ms`, isReadOnly: false };
    const [database, chainsProblem] = await Promise.all([
      within(timeoutMs, askDatabase(), late),
      // Where the database does not tell, that is what is said.
      within(timeoutMs, adviseOnChains(), undefined).catch(() => undefined),
    ]);
    const { queued, queuedMax, writingMs } = pipeline;
    const { state: syncState, clock } = sync.view();
    const verdict = decideHealth({
      isStopping: signal.aborted,
      databaseFailure: database.failure,
      isReadOnly: database.isReadOnly,
      writeRefusal: writes.refusal,
      disk: reserve.facts,
      hasRoom: reserve.hasRoom,
      filesFailure: files?.failure,
      filesAbsence: files?.absence,
      filesDamaged: files?.damaged,
      queued,
      queuedMax,
      writingMs,
      syncState,
      clock: { state: clock.state, offsetMs: clock.offset_ms, clocks: clock.clocks },
      clockDoubt: doubtClock?.(),
      trustProblem: trust.problem(),
      processesProblem: adviseOnProcesses?.(),
      chainsProblem,
    });
    return withSince(verdict, since);
  };
}
