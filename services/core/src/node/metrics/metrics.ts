import {
  cached,
  createHttpObserver,
  createMetrics,
  type HttpObserver,
  type Metrics,
  within,
} from '@skerry/kit';
import type { Kysely } from 'kysely';
import type { Pool } from 'pg';
import type { PipelineObserver } from '../../intake/pipeline/observer.ts';
import type { Schema } from '../../store/schema.ts';
import { LED_ROLES, type LedRole, ROLES, type Role } from '../processes/roles.ts';
import { countKept } from './counts.ts';
import {
  completeDeployed,
  type DeployedMetrics,
  type DeployedName,
  type DeployedReadings,
  renderDeployed,
} from './deployed.ts';

/** Readings that ask the database are this old at most. */
const READINGS_TTL_MS = 10_000;
/** A part that does not say in time what it knows is null in this answer. */
const READING_TIMEOUT_MS = 2_000;
const BATCH_SIZES = [1, 2, 5, 10, 20, 50, 100, 200, 500];
const COMMIT_SECONDS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10];

export interface StreamCounter {
  opened(): void;
  closed(): void;
  /** A reader that did not read, or whose place another client took. */
  letGo(): void;
}

/** What the core node counts of itself. Rooms are handed the part that is theirs. */
export interface CoreMetrics {
  /** For gauges and counters of rooms that are not here yet. */
  readonly own: Metrics;
  readonly http: HttpObserver;
  readonly pipeline: PipelineObserver;
  readonly streams: StreamCounter;
  /** Adds a part of the node that knows some of the deployed names; the last to know one is believed. */
  tell(read: () => DeployedReadings | Promise<DeployedReadings>): void;
  /** `/metrics.json` */
  json(): Promise<DeployedMetrics>;
  /** `/metrics` */
  text(): Promise<string>;
}

export async function createCoreMetrics({ isProcess }: { isProcess: boolean }): Promise<CoreMetrics> {
  const own = await createMetrics({ service: 'core', isProcess });
  const batches = own.histogram('skerry_pipeline_batch_messages', 'messages in one transaction', BATCH_SIZES);
  const commits = own.histogram(
    'skerry_pipeline_commit_duration_seconds',
    'deciding and writing one batch',
    COMMIT_SECONDS,
  );
  const verdicts = own.counter('skerry_pipeline_messages_total', 'messages by what became of them', [
    'status',
  ]);
  const streams = own.gauge('skerry_event_streams_open', 'event streams that are being read');
  streams.set(0);
  const letGo = own.counter(
    'skerry_event_streams_let_go_total',
    'readers that were let go since they did not read, or since a client without a stream took their place',
    [],
  );
  const readers: (() => DeployedReadings | Promise<DeployedReadings>)[] = [];
  const read = async (reader: (typeof readers)[number]) =>
    within(READING_TIMEOUT_MS, Promise.resolve().then(reader), {}).catch(() => ({}));
  const json = cached(READINGS_TTL_MS, async () => {
    const readings = await Promise.all(readers.map(read));
    return completeDeployed(Object.assign({}, ...readings) as DeployedReadings);
  });
  return {
    own,
    http: createHttpObserver(own),
    pipeline: {
      written(statuses, seconds) {
        batches.observe(statuses.length);
        commits.observe(seconds);
        for (const status of statuses) verdicts.inc({ status });
      },
    },
    streams: { opened: () => streams.inc(), closed: () => streams.dec(), letGo: () => letGo.inc() },
    tell: (reader) => readers.push(reader),
    json,
    text: async () => `${await own.text()}${renderDeployed(await json())}`,
  };
}

interface FetchCounts {
  readonly fetched: number;
  readonly failed: number;
}

/** What fetching the files of messages by IPFS came to; undefined where this process has fetched none. */
export function watchFetcher(
  metrics: CoreMetrics,
  read: () => (FetchCounts & { readonly durationMs: number }) | undefined,
): void {
  metrics.tell(() => {
    const { fetched, failed, durationMs } = read() ?? { fetched: 0, failed: 0, durationMs: 0 };
    return {
      pyaleph_store_fetch_ipfs_total: fetched + failed,
      pyaleph_store_fetch_ipfs_failed_total: failed,
      pyaleph_store_fetch_ipfs_duration_ms_sum: Math.round(durationMs),
    };
  });
}

/** The same of files from peers. */
export function watchFileFetcher(
  metrics: CoreMetrics,
  read: () => (FetchCounts & { readonly elapsedMs: number }) | undefined,
): void {
  metrics.tell(() => {
    const { fetched, failed, elapsedMs } = read() ?? { fetched: 0, failed: 0, elapsedMs: 0 };
    return {
      pyaleph_store_fetch_storage_total: fetched + failed,
      pyaleph_store_fetch_storage_failed_total: failed,
      pyaleph_store_fetch_storage_duration_ms_sum: Math.round(elapsedMs),
    };
  });
}

/** Files that were put aside. Every process of the node tells the same number. */
export function watchDamaged({ own }: CoreMetrics, count: () => number): void {
  own.watch('skerry_damaged_files', 'files that were damaged, are needed, and are not here again', count);
}

/** What reading files again came to; undefined where this process has read none. */
export function watchScrub(
  { own }: CoreMetrics,
  read: () =>
    | {
        readonly counts: { readonly files: number; readonly bytes: number; readonly damaged: number };
        readonly share: number;
      }
    | undefined,
): void {
  const counted = (name: string, help: string, what: 'files' | 'bytes' | 'damaged') =>
    own.watchCounter(name, help, () => read()?.counts[what] ?? 0);
  counted('skerry_scrub_files_total', 'files that were read again and compared with their hash', 'files');
  counted('skerry_scrub_bytes_total', 'bytes of them', 'bytes');
  counted('skerry_scrub_damaged_total', 'of them, those that were damaged', 'damaged');
  own.watch(
    'skerry_scrub_pass_ratio',
    'how much of a pass through all files is done, from 0 to 1',
    () => read()?.share ?? 0,
  );
}

/** Which processes of the node live, and what this one leads. */
export function watchProcesses(
  { own }: CoreMetrics,
  member: { countOf(role: Role): number; leads(role: LedRole): boolean },
): void {
  own.watch(
    'skerry_processes',
    'processes of this node that live, by role',
    () => ROLES.map((role) => ({ labels: { role }, value: member.countOf(role) })),
    ['role'],
  );
  own.watch(
    'skerry_leads',
    '1: this process does what one alone does in this role',
    () => LED_ROLES.map((role) => ({ labels: { role }, value: Number(member.leads(role)) })),
    ['role'],
  );
}

interface WatchedSync {
  readonly syncer: {
    view(): {
      readonly peers: readonly { readonly state: string }[];
      readonly messages: number;
      readonly behind: number;
      readonly later: number;
      readonly clock: { readonly offset_ms: number | null };
    };
  };
  readonly losses: number;
}

/** How far peers are ahead, how far the machine's clock is off, and what waits for its time to come. */
export function watchSync({ own, tell }: CoreMetrics, sync: WatchedSync): void {
  const { syncer } = sync;
  tell(() => {
    const { peers, messages, behind } = syncer.view();
    return {
      pyaleph_status_peers_total: peers.filter(({ state }) => state === 'synced' || state === 'syncing')
        .length,
      pyaleph_status_sync_messages_reference_total: messages + behind,
      pyaleph_status_sync_messages_remaining_total: behind,
    };
  });
  own.watch(
    'skerry_clock_offset_seconds',
    "what the median of the peers' clocks has more than this server's",
    () => (syncer.view().clock.offset_ms ?? 0) / 1000,
  );
  own.watch(
    'skerry_sync_stalled_peers',
    'peers that answer, do not bring what they say to have, and are not waited for',
    () => syncer.view().peers.filter(({ state }) => state === 'stalled').length,
  );
  own.watch(
    'skerry_sync_later_messages',
    "messages of a peer that are ahead of this node's clock",
    () => syncer.view().later,
  );
  own.watch(
    'skerry_database_losses',
    'how often the database turned out to have lost what was acknowledged, since this process began',
    () => sync.losses,
  );
}

export interface MetricsSources {
  readonly db: Kysely<Schema>;
  readonly pool: Pick<Pool, 'totalCount' | 'idleCount' | 'waitingCount'>;
  /** The part of it that answers are read with. */
  readonly answering: Pick<Pool, 'waitingCount'>;
  readonly pipeline: { readonly queued: number };
}

/** Connects the metrics to what they read, once that is built. */
export function watchCore(metrics: CoreMetrics, { db, pool, answering, pipeline }: MetricsSources): void {
  metrics.own.watch(
    'skerry_pipeline_queue_length',
    'messages that wait to be written',
    () => pipeline.queued,
  );
  metrics.own.watch(
    'skerry_database_connections',
    'connections of the pool by state, and callers that wait for one',
    () => [
      { labels: { state: 'busy' }, value: pool.totalCount - pool.idleCount },
      { labels: { state: 'idle' }, value: pool.idleCount },
      { labels: { state: 'awaited' }, value: pool.waitingCount + answering.waitingCount },
    ],
    ['state'],
  );
  metrics.tell(async () => {
    const { messages, pending, files } = await countKept(db);
    return {
      pyaleph_status_sync_messages_total: messages,
      pyaleph_status_sync_pending_messages_total: pending + pipeline.queued,
      pyaleph_status_sync_permanent_files_total: files,
    } satisfies Partial<Record<DeployedName, number>>;
  });
}
