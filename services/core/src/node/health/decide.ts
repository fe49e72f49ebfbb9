import { type DiskFacts, isFull, isLow } from '@skerry/database';
import { adviseOnClock, type ClockComparison } from '../../peers/sync/clock.ts';
import type { SyncState } from '../../peers/sync/view.ts';

export type HealthStatus = 'ok' | 'degraded' | 'unavailable';

export interface HealthFacts {
  readonly isStopping: boolean;
  /** Why the database does not answer; undefined when it does. */
  readonly databaseFailure: string | undefined;
  /** It answers, but takes no writes, as during a failover. */
  readonly isReadOnly: boolean;
  /** Why it refuses writes, where it answers and its server has no room; undefined where it takes them. */
  readonly writeRefusal?: string | undefined;
  /** null where it could not be found out. */
  readonly disk: DiskFacts | null;
  /** Whether something new is taken. */
  readonly hasRoom: boolean;
  /** Why files cannot be written, in words, although there is room; undefined where they can. */
  readonly filesFailure?: string | undefined;
  /** Why files can be neither read nor written, in words; undefined where their disk is there. */
  readonly filesAbsence?: string | undefined;
  /** Files that were found damaged, and have not come again. */
  readonly filesDamaged?: number | undefined;
  readonly queued: number;
  readonly queuedMax: number;
  /** How long the write that runs has taken until now; 0 where none runs. */
  readonly writingMs: number;
  readonly syncState: SyncState;
  readonly clock: ClockComparison;
  /** Why the clock may be wrong by what the node has, where nobody else tells the time. */
  readonly clockDoubt?: string | undefined;
  /** Why answers may differ from those of other nodes; undefined where they do not. */
  readonly trustProblem?: string | undefined;
  /** Which roles no process of the node fills, or how many are too many for the database; undefined where nothing is wrong. */
  readonly processesProblem?: string | undefined;
  /** What is wrong with the chains that the node reads; undefined where nothing is. */
  readonly chainsProblem?: string | undefined;
}

export interface Check {
  readonly status: HealthStatus;
  readonly reason?: string;
  /** Since when it is not ok, Unix milliseconds. */
  readonly since_ms?: number;
}

export interface HealthVerdict {
  readonly status: HealthStatus;
  readonly reason?: string;
  readonly since_ms?: number;
  readonly checks: {
    readonly database: Check;
    readonly disk: Check & {
      readonly free_bytes: number | null;
      readonly reserve_bytes: number | null;
      readonly takes_writes: boolean;
    };
    readonly pipeline: Check & { readonly queued: number };
    readonly trust: Check;
    readonly roles: Check;
    readonly chains: Check;
    readonly peers: Check & { readonly state: SyncState };
    readonly clock: Check & { readonly offset_ms: number | null };
  };
}

/** A queue this full is not emptied as fast as it fills. */
const QUEUE_LONG_SHARE = 0.5;
/** A write this long waits for something, such as a standby that has to confirm it. */
const WRITE_LONG_MS = 5_000;

const WORST: readonly HealthStatus[] = ['unavailable', 'degraded', 'ok'];

function decideDisk({ disk, hasRoom, filesFailure, filesAbsence, filesDamaged = 0 }: HealthFacts): Check {
  if (disk === null) return { status: 'degraded', reason: 'the free space of the disk could not be read' };
  // PostgreSQL may not be able to write its log: the node takes no part any more.
  if (isFull(disk)) return { status: 'unavailable', reason: 'the disk is full' };
  if (filesAbsence !== undefined)
    return {
      status: 'degraded',
      reason: `the files are not here (${filesAbsence}): none is served or taken, messages continue`,
    };
  if (filesFailure !== undefined)
    return {
      status: 'degraded',
      reason: `files cannot be written (${filesFailure}): uploads are refused, reads and messages continue`,
    };
  if (!hasRoom)
    return { status: 'degraded', reason: 'the disk is nearly full: writes are refused, reads continue' };
  if (isLow(disk)) return { status: 'degraded', reason: 'the disk is nearly full' };
  if (filesDamaged > 0)
    return {
      status: 'degraded',
      reason: `${filesDamaged} ${filesDamaged === 1 ? 'file was' : 'files were'} damaged on the disk and did not come from others yet`,
    };
  return { status: 'ok' };
}

function decideDatabase({ databaseFailure, isReadOnly, writeRefusal }: HealthFacts): Check {
  if (databaseFailure !== undefined) return { status: 'unavailable', reason: databaseFailure };
  if (isReadOnly)
    return { status: 'degraded', reason: 'the database takes no writes at the moment; reads continue' };
  if (writeRefusal !== undefined)
    return { status: 'degraded', reason: `${writeRefusal}: writes are refused, reads continue` };
  return { status: 'ok' };
}

function decidePipeline({ queued, queuedMax, writingMs }: HealthFacts): Check {
  if (queued >= queuedMax) return { status: 'unavailable', reason: 'the queue of messages to write is full' };
  if (queued >= queuedMax * QUEUE_LONG_SHARE)
    return { status: 'degraded', reason: 'messages arrive faster than they are written' };
  if (writingMs >= WRITE_LONG_MS)
    return {
      status: 'degraded',
      reason: `the database has not confirmed a write for ${Math.floor(writingMs / 1_000)} s; reads continue`,
    };
  return { status: 'ok' };
}

const OUT_OF_STEP: Readonly<Partial<Record<SyncState, string>>> = {
  syncing: 'the node does not yet have everything its peers have: answers may be incomplete',
  apart: 'no peer answers, or none brings what it says to have',
};

const okUnless = (problem: string | undefined): Check =>
  problem === undefined ? { status: 'ok' } : { status: 'degraded', reason: problem };

/** The node is as well as its worst part; a node that stops is not to be asked any more. */
export function decideHealth(facts: HealthFacts): HealthVerdict {
  const { isStopping, disk, hasRoom, filesFailure, filesAbsence, queued, syncState, clock } = facts;
  const checks = {
    database: decideDatabase(facts),
    disk: {
      ...decideDisk(facts),
      free_bytes: disk?.freeBytes ?? null,
      reserve_bytes: disk?.reserveBytes ?? null,
      takes_writes: hasRoom && filesFailure === undefined && filesAbsence === undefined,
    },
    pipeline: { ...decidePipeline(facts), queued },
    trust: okUnless(facts.trustProblem),
    roles: okUnless(facts.processesProblem),
    chains: okUnless(facts.chainsProblem),
    peers: { ...okUnless(OUT_OF_STEP[syncState]), state: syncState },
    clock: { ...okUnless(adviseOnClock(clock) ?? facts.clockDoubt), offset_ms: clock.offsetMs },
  };
  const statuses = Object.values(checks).map((check) => check.status);
  if (isStopping) return { status: 'unavailable', reason: 'the node is stopping', checks };
  return { status: WORST.find((status) => statuses.includes(status)) ?? 'ok', checks };
}
