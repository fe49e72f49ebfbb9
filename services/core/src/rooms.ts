import { hkdfSync } from 'node:crypto';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { type Logger, loadOrCreateKeyFile } from '@skerry/kit';
import { type ItemHash, isItemHash64, LIMITS } from '@skerry/protocol';
import type { Database } from './db/connect.ts';
import { createWrite } from './db/copy.ts';
import type { Schema } from './db/schema.ts';
import { createEventLog } from './events/log.ts';
import type { BlobStore } from './files/blob-store.ts';
import { Files } from './files/files.ts';
import { createHealth } from './health/health.ts';
import type { Rooms, RouteSettings } from './http/rooms.ts';
import type { Indexer } from './indexer/indexer.ts';
import { syncPublishers } from './measurements/publishers.ts';
import { createIntake } from './messages/intake.ts';
import { Pipeline } from './messages/pipeline.ts';
import type { Kept } from './messages/statement.ts';
import { createCoreMetrics, watchCore } from './metrics/metrics.ts';
import type { PeerLink } from './sync/link.ts';
import { NodeSet } from './sync/node-set.ts';
import { createSync } from './sync/sync.ts';
import type { Verifier } from './verify/verifier.ts';
import { openRandomness } from './vrf/randomness.ts';
import { createSealedBox, KEY_BYTES } from './webhooks/sealed-box.ts';
import { createSender, type SenderSettings } from './webhooks/send.ts';

export interface RoomOptions {
  readonly database: Database<Schema>;
  readonly blobs: BlobStore;
  readonly verifier: Verifier;
  readonly dataDir: string;
  /** Addresses whose allocations count. */
  readonly schedulers: ReadonlySet<string>;
  /** Addresses whose measurements the metrics lookup serves. */
  readonly publishers: ReadonlySet<string>;
  readonly pendingHorizonMs: number;
  /** Raised to retire the key for random values. */
  readonly vrfKeyEpoch: number;
  readonly indexer: Indexer;
  readonly settings: RouteSettings;
  readonly webhooks?: SenderSettings | undefined;
  /** Core nodes to keep in step with. */
  readonly peers?: readonly PeerLink[] | undefined;
  readonly syncIntervalMs?: number | undefined;
  readonly now: () => number;
  /** Ends when the node stops. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** Whether the metrics of the process are this node's. */
  readonly isProcess: boolean;
  readonly healthTimeoutMs?: number | undefined;
}

const SEALING_KEY_FILE = 'sealing.key';
const SEALING_PURPOSE = 'skerry webhook secrets';

/** The content file of a message; larger ones are no contents. */
async function readBlob(blobs: BlobStore, hash: string): Promise<Uint8Array | undefined> {
  if (!isItemHash64(hash)) return undefined;
  const blob = await blobs.find(hash as ItemHash);
  if (!blob) return undefined;
  return blob.sizeBytes > LIMITS.contentFileBytes
    ? new Uint8Array(LIMITS.contentFileBytes + 1)
    : buffer(await blobs.read(hash as ItemHash));
}

/** Everything behind the doors, each part given what it needs of the others. */
export async function createRooms(options: RoomOptions): Promise<Rooms> {
  const { database, blobs, verifier, dataDir, schedulers, pendingHorizonMs, settings, now, signal, log } =
    options;
  const db = database.kysely;
  await syncPublishers(db, options.publishers);
  const events = createEventLog(db);
  const metrics = await createCoreMetrics({ isProcess: options.isProcess });
  const readContentFile = (hash: string) => readBlob(blobs, hash);
  const set = new NodeSet();
  const keptListeners: ((kept: Kept) => void)[] = [];
  const pipeline = new Pipeline({
    db,
    write: createWrite(database.pool),
    events,
    schedulers,
    pendingHorizonMs,
    readContentFile,
    now,
    observer: metrics.pipeline,
    onKept: (kept) => {
      set.follow(kept.moves);
      for (const tell of keptListeners) tell(kept);
    },
    log,
  });
  watchCore(metrics, { db, pool: database.pool, pipeline });
  const taker = { verifier, pipeline, readContentFile, now };
  const sync = createSync({
    db,
    set,
    taker,
    links: options.peers ?? [],
    intervalMs: options.syncIntervalMs ?? 120_000,
    now,
    log,
  });
  metrics.tell(() => {
    const { peers, messages, behind } = sync.syncer.view();
    return {
      pyaleph_status_peers_total: peers.filter(({ state }) => state === 'synced' || state === 'syncing')
        .length,
      pyaleph_status_sync_messages_reference_total: messages + behind,
      pyaleph_status_sync_messages_remaining_total: behind,
    };
  });
  const sealingKey = await loadOrCreateKeyFile(join(dataDir, SEALING_KEY_FILE));
  return {
    db,
    pipeline,
    intake: createIntake({ verifier, pipeline, readContentFile, now }),
    events,
    files: new Files({ db, blobs, pipeline, now, uploadLimitBytes: settings.uploadLimitBytes }),
    secrets: createSealedBox(new Uint8Array(hkdfSync('sha256', sealingKey, '', SEALING_PURPOSE, KEY_BYTES))),
    randomness: await openRandomness({
      dataDir,
      epoch: options.vrfKeyEpoch,
      nowSeconds: Math.floor(now() / 1000),
    }),
    indexer: options.indexer,
    sync,
    taker,
    onKept: (listener) => keptListeners.push(listener),
    network: { addresses: () => [] },
    sender: createSender({ ...options.webhooks, now }),
    metrics,
    health: createHealth({
      db,
      pipeline,
      sync: sync.syncer,
      dataDir,
      signal,
      log,
      ...(options.healthTimeoutMs === undefined ? {} : { timeoutMs: options.healthTimeoutMs }),
    }),
    now,
    signal,
    settings,
  };
}
