import { hkdfSync } from 'node:crypto';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { createSigner } from '@skerry/client';
import {
  cached,
  createAsker,
  createReach,
  createStandings,
  type Logger,
  loadOrCreateKeyFile,
} from '@skerry/kit';
import { AppError, type ItemHash, isItemHash64, LIMITS } from '@skerry/protocol';
import { deriveCredits } from './credits/derive.ts';
import type { Database } from './db/connect.ts';
import { createWrite } from './db/copy.ts';
import type { Schema } from './db/schema.ts';
import { BOUNDLESS, type DiskReserve } from './disk/reserve.ts';
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
import { createIntake } from './messages/intake.ts';
import { Pipeline } from './messages/pipeline.ts';
import type { Kept } from './messages/statement.ts';
import { createCoreMetrics, watchCore, watchSync } from './metrics/metrics.ts';
import { readRunners } from './programs/runners.ts';
import { NetworkClock } from './sync/clock.ts';
import type { PeerLink } from './sync/link.ts';
import { NodeSet } from './sync/node-set.ts';
import { createSync } from './sync/sync.ts';
import { askTrust } from './trust/ask.ts';
import { enforcementOf, orderedAddresses } from './trust/decide.ts';
import { type GivenTrust, Trust } from './trust/trust.ts';
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
  /** Addresses whose allocations count; here and below: undefined, whom the peers trust. */
  readonly schedulers: ReadonlySet<string> | undefined;
  /** Addresses whose measurements the metrics lookup serves. */
  readonly publishers: ReadonlySet<string> | undefined;
  /** Addresses whose word on credit counts. */
  readonly creditPublishers?: ReadonlySet<string> | undefined;
  /** Whether what an owner has not the credit for is refused. */
  readonly creditEnforcement?: boolean | undefined;
  readonly pendingHorizonMs: number;
  /** Addresses of other core nodes whose published keys for random values count. */
  readonly coreNodes: ReadonlySet<string> | undefined;
  /** Core nodes that are asked whom they trust, by URL. */
  readonly trustUrls?: readonly string[] | undefined;
  /** Raised to retire the key for random values. */
  readonly vrfKeyEpoch: number;
  readonly indexer: Indexer;
  readonly settings: RouteSettings;
  readonly webhooks?: SenderSettings | undefined;
  /** Whether compute nodes at private addresses are asked. */
  readonly allowPrivate?: boolean | undefined;
  readonly ipfs: IpfsSettings;
  readonly reserve?: DiskReserve | undefined;
  /** How long files that nothing keeps stay. */
  readonly fileGraceMs: number;
  /** API roots of peers, which may have blocks of IPFS. */
  readonly peerUrls?: (() => readonly string[]) | undefined;
  /** Core nodes to keep in step with. */
  readonly peers?: readonly PeerLink[] | undefined;
  readonly syncIntervalMs?: number | undefined;
  /** This machine's clock, milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds since whenever; never set. */
  readonly uptime?: (() => number) | undefined;
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

/** The content file of a message; larger ones are no contents. Throws STORAGE_UNAVAILABLE. */
async function readBlob(blobs: BlobStore, hash: string): Promise<Uint8Array | undefined> {
  try {
    const blob = await blobs.find(hash as ItemHash);
    if (!blob) return undefined;
    if (blob.sizeBytes > LIMITS.contentFileBytes) return new Uint8Array(LIMITS.contentFileBytes + 1);
    return await buffer(await blobs.read(hash as ItemHash));
  } catch (error) {
    // It went between the two looks.
    if (error instanceof AppError && error.code === 'FILE_NOT_FOUND') return undefined;
    if (error instanceof AppError) throw error;
    throw new AppError('STORAGE_UNAVAILABLE', 'the files cannot be read now', { cause: error });
  }
}

/** What the settings say of whom the node trusts; what they leave out is not in it. */
function givenTrust({
  schedulers,
  publishers,
  creditPublishers,
  coreNodes,
  creditEnforcement,
}: RoomOptions): GivenTrust {
  return {
    ...(schedulers && { schedulers: orderedAddresses(schedulers) }),
    ...(publishers && { scoring_publishers: orderedAddresses(publishers) }),
    ...(creditPublishers && { credit_publishers: orderedAddresses(creditPublishers) }),
    ...(coreNodes && { known_core_nodes: orderedAddresses(coreNodes) }),
    ...(creditEnforcement !== undefined && { credit_enforcement: enforcementOf(creditEnforcement) }),
  };
}

/** Everything behind the doors, each part given what it needs of the others. */
export async function createRooms(options: RoomOptions): Promise<Rooms> {
  const { database, blobs, verifier, dataDir, pendingHorizonMs, settings, signal, log } = options;
  const clock = new NetworkClock({ machineNow: options.now, uptime: options.uptime, log });
  const { now } = clock;
  const db = database.kysely;
  const { trustUrls = [] } = options;
  const reserve = options.reserve ?? BOUNDLESS;
  const trust = await Trust.open({ db, given: givenTrust(options), peers: trustUrls.length, log });
  const schedulers = trust.setOf('schedulers');
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
    reserve,
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
  await deriveCredits(db, readContentFile, trust.isCreditEnforced);
  watchCore(metrics, { db, pool: database.pool, pipeline });
  watchIndexer(metrics.own, options.indexer, now);
  const intake = createIntake({ verifier, pipeline, readContentFile, now });
  const signer = createSigner(await loadOrCreateKeyFile(join(dataDir, NODE_KEY_FILE)));
  const randomness = await openRandomness({
    dataDir,
    epoch: options.vrfKeyEpoch,
    nowSeconds: Math.floor(now() / 1000),
    alsoKnown: knownFromRegistry(db, trust.setOf('known_core_nodes')),
  });
  const taker = { verifier, pipeline, readContentFile, now };
  const sync = createSync({
    db,
    set,
    taker,
    links: options.peers ?? [],
    intervalMs: options.syncIntervalMs ?? 120_000,
    clock,
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
  watchSync(metrics.own, sync.syncer);
  const sealingKey = await loadOrCreateKeyFile(join(dataDir, SEALING_KEY_FILE));
  const asker = createAsker({ mayReach: createReach(options.allowPrivate ?? false), keepAlive: true });
  signal.addEventListener('abort', () => asker.close(), { once: true });
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
    trust,
    async learnTrust() {
      if (trustUrls.length === 0 || !trust.isAsking) return;
      const told = await Promise.all(trustUrls.map((url) => askTrust(url, signer.address, signal)));
      if (!signal.aborted) await trust.hear(told.filter((one) => one !== undefined));
    },
    deriveTrust: () => trust.derive({ pipeline, readContentFile }, signal),
    listRunners: cached(RUNNERS_MS, () => readRunners(db, schedulers)),
    forwarding: { asker, signal },
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
      trust,
      reserve,
      signal,
      log,
      ...(options.healthTimeoutMs === undefined ? {} : { timeoutMs: options.healthTimeoutMs }),
    }),
    reserve,
    now,
    signal,
    settings,
  };
}
