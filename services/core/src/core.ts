import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Host, listen, type RunningService, runLoop } from '@skerry/kit';
import { parseEvmAddress } from '@skerry/protocol';
import { startAnchoring } from './chain/anchoring.ts';
import { watchAnchoring } from './chain/metrics.ts';
import { loadAnchorSettings } from './chain/settings.ts';
import type { CoreConfig } from './config.ts';
import { openDatabase } from './db/connect.ts';
import { createWrite } from './db/copy.ts';
import { migrate } from './db/migrate.ts';
import type { Schema } from './db/schema.ts';
import { openBlobStore } from './files/choose-store.ts';
import { FileFetcher } from './files/fetcher.ts';
import { Sweep, startSweeping } from './files/sweep.ts';
import { createApi } from './http/api.ts';
import type { Rooms } from './http/rooms.ts';
import { startIndexer } from './indexer/indexer.ts';
import { followIndexPosts } from './indexer/posts.ts';
import { loadIndexerSettings } from './indexer/settings.ts';
import { startFetcher } from './ipfs/fetcher.ts';
import { startIpfsUpkeep } from './ipfs/ipfs-files.ts';
import { eraseForgotten } from './messages/erase.ts';
import { watchFetcher } from './metrics/metrics.ts';
import { startGossip } from './p2p/start.ts';
import { createRooms } from './rooms.ts';
import { routeSettingsOf } from './route-settings.ts';
import { createPeerFileSource } from './sync/file-source.ts';
import { createHttpLink } from './sync/link.ts';
import type { Sync } from './sync/sync.ts';
import { VerifierPool } from './verify/pool.ts';
import { createDispatchObserver, startDeliverer } from './webhooks/deliverer.ts';

const MIGRATIONS = fileURLToPath(new URL('./db/migrations', import.meta.url));

/** How often what is pending for too long, and what was forgotten long ago, is looked for. */
const UPKEEP_INTERVAL_MS = 10_000;

/** One core is left to the thread that answers requests. */
const workersOf = (config: CoreConfig) => config.verifyWorkers || Math.max(1, availableParallelism() - 1);

/** Peers that are told by a multiaddr are gossiped with alone. */
const urlsOf = (peers: readonly string[]) => peers.filter((peer) => !peer.startsWith('/'));

const addressesOf = (texts: readonly string[] | undefined) =>
  texts && new Set<string>(texts.map(parseEvmAddress));

/** How often peers are asked whom they trust. */
const TRUST_INTERVAL_MS = 10_000;

/** What is stored is derived again beside everything else. */
const startTrusting = (rooms: Rooms, { signal, log }: Host) =>
  runLoop({ name: 'trust', intervalMs: TRUST_INTERVAL_MS, signal, log }, async () => {
    await rooms.learnTrust();
    await rooms.deriveTrust();
  });

/** How often files that messages lack are looked for. */
const FETCH_INTERVAL_MS = 1_000;

async function startFetching(rooms: Rooms, peers: readonly string[], { signal, log }: Host): Promise<void> {
  const { reputation } = rooms.sync.syncer;
  const sources = peers.map((url) => createPeerFileSource(url, () => reputation.noteMisbehaved(url)));
  const fetcher = new FileFetcher({ ...rooms, sources, log });
  rooms.metrics.tell(() => ({
    pyaleph_store_fetch_storage_total: fetcher.counts.fetched + fetcher.counts.failed,
    pyaleph_store_fetch_storage_failed_total: fetcher.counts.failed,
    pyaleph_store_fetch_storage_duration_ms_sum: Math.round(fetcher.counts.elapsedMs),
  }));
  await runLoop({ name: 'files of peers', intervalMs: FETCH_INTERVAL_MS, signal, log }, async () => {
    await fetcher.look(signal);
  });
  await fetcher.idle();
}

/** Answers do not wait for it; the node says that it is syncing. */
async function startSyncing(sync: Sync, { signal, log }: Host): Promise<void> {
  try {
    await sync.load();
    await sync.syncer.run(signal);
  } catch (error) {
    if (!signal.aborted)
      log.error({ err: error }, 'the node cannot keep in step with its peers; start it again');
  }
}

/** Builds the core node from the floor up, and takes it down in reverse. */
export async function startCore(config: CoreConfig, { log, signal }: Host): Promise<RunningService> {
  const { dataDir } = config;
  await using stack = new AsyncDisposableStack();
  const database = stack.use(
    await openDatabase<Schema>({
      databaseUrl: config.databaseUrl,
      dataDir: join(dataDir, 'postgres'),
      log,
      signal,
    }),
  );
  await migrate({ pool: database.pool, directory: MIGRATIONS, log });
  const blobs = await openBlobStore(config, join(dataDir, 'files'));
  const verifier = stack.use(new VerifierPool({ workers: workersOf(config), log }));
  // The host's signal, or our own disposal: either way streams end and the node says that it stops.
  const stop = new AbortController();
  const stopping = AbortSignal.any([signal, stop.signal]);
  const { anchors, indexer: indexing } = await loadAnchorSettings(
    config.anchorFile,
    await loadIndexerSettings(config.indexerFile),
  );
  const indexer = stack.use(await startIndexer({ pool: database.pool, settings: indexing, log }));
  const graceMs = config.fileGraceMinutes * 60_000;
  const rooms = await createRooms({
    indexer,
    database,
    blobs,
    verifier,
    dataDir,
    schedulers: addressesOf(config.schedulers),
    coreNodes: addressesOf(config.knownCoreNodes),
    publishers: addressesOf(config.scoringPublishers),
    creditPublishers: addressesOf(config.creditPublishers),
    creditEnforcement: config.creditEnforcement,
    trustUrls: urlsOf(config.peers),
    pendingHorizonMs: config.pendingHorizonSeconds * 1000,
    vrfKeyEpoch: config.vrfKeyEpoch,
    settings: routeSettingsOf(config),
    webhooks: {
      timeoutMs: config.webhookTimeoutMs,
      allowHttp: config.webhookAllowHttp,
      allowedAddresses: config.webhookAllowAddresses,
    },
    ipfs: {
      rpcUrl: config.ipfsRpcUrl,
      rpcAuthorization: config.ipfsRpcAuthorization,
      gateways: config.ipfsGateways,
      timeoutMs: config.ipfsTimeoutMs,
    },
    fileGraceMs: graceMs,
    peers: urlsOf(config.peers).map(createHttpLink),
    peerUrls: () => urlsOf(config.peers).map((url) => `${url}/api/v0`),
    syncIntervalMs: config.syncIntervalSeconds * 1000,
    now: Date.now,
    signal: stopping,
    log,
    isProcess: true,
  });
  const { pipeline, db, events, now } = rooms;
  stack.use(followIndexPosts({ db, pool: database.pool, events, indexer, log }));
  stack.defer(() => pipeline.close());
  // Before anybody asks: what it would answer hangs on it.
  await rooms.learnTrust();
  // What an earlier process had left in line is decided before anybody asks.
  await pipeline.idle();
  await rooms.announce();
  const trusting = startTrusting(rooms, { signal: stopping, log });
  stack.defer(() => trusting);
  const upkeep = runLoop(
    { name: 'upkeep', intervalMs: UPKEEP_INTERVAL_MS, signal: stopping, log },
    async () => {
      await pipeline.expire();
      await eraseForgotten(db, now());
    },
  );
  stack.defer(() => upkeep);
  const sweep = new Sweep({ db, blobs, claims: rooms.files.claims, graceMs, now, log });
  stack.use(startSweeping(sweep, { signal: stopping, log }));
  const fetcher = stack.use(
    startFetcher({
      db,
      files: rooms.ipfs,
      limitBytes: config.ipfsPinBytes,
      tryMs: config.ipfsPinSeconds * 1000,
      now,
      log,
    }),
  );
  watchFetcher(rooms.metrics, fetcher);
  const anchoring = stack.use(
    await startAnchoring({
      ...rooms,
      pool: database.pool,
      write: createWrite(database.pool),
      files: rooms.ipfs,
      anchors,
      log,
    }),
  );
  watchAnchoring(rooms.metrics, { db, pool: database.pool, anchors, anchoring });
  stack.use(startIpfsUpkeep(rooms.ipfs, { signal: stopping, log }));
  stack.use(startDeliverer({ ...rooms, observer: createDispatchObserver(rooms.metrics.own), log }));
  const fetching = startFetching(rooms, urlsOf(config.peers), { signal: stopping, log });
  stack.defer(() => fetching);
  const syncing = startSyncing(rooms.sync, { signal: stopping, log });
  stack.defer(() => syncing);
  stack.use(await startGossip(rooms, config, { signal: stopping, log }));
  const api = await createApi(rooms, log);
  stack.defer(() => api.close());
  stack.defer(() => stop.abort());
  const url = await listen(api, config.host, config.port);
  const owned = stack.move();
  return { urls: [url], [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
