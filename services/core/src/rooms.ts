import { hkdfSync } from 'node:crypto';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { createSigner } from '@skerry/client';
import { cached, createStandings, type Logger, loadOrCreateKeyFile } from '@skerry/kit';
import { type ItemHash, isItemHash64, LIMITS } from '@skerry/protocol';
import { deriveCredits } from './credits/derive.ts';
import type { Database } from './db/connect.ts';
import { createWrite } from './db/copy.ts';
import type { Schema } from './db/schema.ts';
import { createEventLog } from './events/log.ts';
import type { BlobStore } from './files/blob-store.ts';
import { Files } from './files/files.ts';
import { Uploads } from './files/uploads.ts';
import { createHealth } from './health/health.ts';
import type { Rooms, RouteSettings } from './http/rooms.ts';
import type { Indexer } from './indexer/indexer.ts';
import { watchIndexer } from './indexer/metrics.ts';
import { chooseIpfs, type IpfsSettings } from './ipfs/choose-ipfs.ts';
import { IpfsFiles } from './ipfs/ipfs-files.ts';
import { syncPublishers } from './measurements/publishers.ts';
import { createIntake } from './messages/intake.ts';
import { Pipeline } from './messages/pipeline.ts';
import type { Kept } from './messages/statement.ts';
import { createCoreMetrics, watchCore } from './metrics/metrics.ts';
import { readRunners } from './programs/runners.ts';
import type { PeerLink } from './sync/link.ts';
import { NodeSet } from './sync/node-set.ts';
import { createSync } from './sync/sync.ts';
import type { Verifier } from './verify/verifier.ts';
import { knownFromRegistry, publishVrfKeys } from './vrf/published-keys.ts';
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
  /** Addresses whose word on credit counts. */
  readonly creditPublishers?: ReadonlySet<string> | undefined;
  /** Whether what an owner has not the credit for is refused. */
  readonly creditEnforcement?: boolean | undefined;
  readonly pendingHorizonMs: number;
  /** Addresses of other core nodes whose published keys for random values count. */
  readonly coreNodes: ReadonlySet<string>;
  /** Raised to retire the key for random values. */
  readonly vrfKeyEpoch: number;
  readonly indexer: Indexer;
  readonly settings: RouteSettings;
  readonly webhooks?: SenderSettings | undefined;
  readonly ipfs: IpfsSettings;
  /** How long files that nothing keeps stay. */
  readonly fileGraceMs: number;
  /** API roots of peers, which may have blocks of IPFS. */
  readonly peerUrls?: (() => readonly string[]) | undefined;
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

/** A change of the list of runners is seen within this time. */
const RUNNERS_MS = 1_000;

const NODE_KEY_FILE = 'node.key';
const SEALING_KEY_FILE = 'sealing.key';
const SEALING_PURPOSE = 'skerry webhook secrets';

/** The content file of a message; larger ones are no contents. */
async function readBlob(blobs: BlobStore, hash: string): Promise<Uint8Array | undefined> {
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
  const readContentFile = (hash: string) =>
    isItemHash64(hash) ? readBlob(blobs, hash) : ipfs.readContent(hash);
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
  const files = new Files({ db, blobs, pipeline, now, uploadLimitBytes: settings.uploadLimitBytes });
  const ipfs = new IpfsFiles({
    db,
    ipfs: chooseIpfs(options.ipfs, { db, blobs, claims: files.claims, now, peers: options.peerUrls }),
    pipeline,
    now,
    graceMs: options.fileGraceMs,
    timeoutMs: options.ipfs.timeoutMs,
  });
  await deriveCredits(db, options.creditPublishers ?? new Set(), readContentFile, options.creditEnforcement);
  watchCore(metrics, { db, pool: database.pool, pipeline });
  watchIndexer(metrics.own, options.indexer, now);
  const intake = createIntake({ verifier, pipeline, readContentFile, now });
  const signer = createSigner(await loadOrCreateKeyFile(join(dataDir, NODE_KEY_FILE)));
  const randomness = await openRandomness({
    dataDir,
    epoch: options.vrfKeyEpoch,
    nowSeconds: Math.floor(now() / 1000),
    alsoKnown: knownFromRegistry(db, options.coreNodes),
  });
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
    intake,
    events,
    files,
    uploads: new Uploads(db, settings.uploads),
    standingOf: createStandings(settings.limits),
    ipfs,
    secrets: createSealedBox(new Uint8Array(hkdfSync('sha256', sealingKey, '', SEALING_PURPOSE, KEY_BYTES))),
    randomness,
    nodeAddress: signer.address,
    announce: () => publishVrfKeys({ db, intake, signer, keys: randomness.keys, now }),
    indexer: options.indexer,
    listRunners: cached(RUNNERS_MS, () => readRunners(db, schedulers)),
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
