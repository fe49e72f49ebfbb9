import { mkdir } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Host, listen, persist, type RunningService, runLoop } from '@skerry/kit';
import { AppError, parseEvmAddress } from '@skerry/protocol';
import { startAnchoring } from './chain/anchoring.ts';
import { watchAnchoring } from './chain/metrics.ts';
import { loadAnchorSettings } from './chain/settings.ts';
import type { CoreConfig } from './config.ts';
import { openDatabase } from './db/connect.ts';
import { createWrite } from './db/copy.ts';
import { migrate } from './db/migrate.ts';
import type { Schema } from './db/schema.ts';
import { Reserve } from './disk/reserve.ts';
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
  const heard = new Set<string>();
  await runLoop({ name: 'files of peers', intervalMs: FETCH_INTERVAL_MS, signal, log }, async () => {
    let isBack = false;
    for (const { name, state } of rooms.sync.syncer.view().peers) {
      const answers = state === 'synced' || state === 'syncing';
      if (answers && !heard.has(name)) isBack = true;
      if (answers) heard.add(name);
      else heard.delete(name);
    }
    if (isBack) fetcher.wake();
    await fetcher.look(signal);
  });
  await fetcher.idle();
}

/** Between tries to read what is kept, while the database is away. */
const LOAD_RETRY_MS = { baseMs: 500, maxMs: 15_000 };

/** Answers do not wait for it; the node says that it is syncing. */
async function startSyncing(sync: Sync, { signal, log }: Host): Promise<void> {
  const options = { ...LOAD_RETRY_MS, signal, log };
  await persist({ name: 'reading the keys of all messages', ...options }, () => sync.load());
  await persist({ name: 'keeping in step with peers', ...options }, () => sync.syncer.run(signal));
}

/** What the node publishes is told at the start; a disk without room for it is no reason not to start. */
function announceOnce(announce: () => Promise<unknown>, log: Host['log']): () => Promise<void> {
  let isDone = false;
  return async () => {
    if (isDone) return;
    try {
      await announce();
      isDone = true;
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'STORAGE_FULL') throw error;
      log.warn(
        { reason: error.message },
        'the keys of this node are announced when there is room on its disk',
      );
    }
  };
}

/** Builds the core node from the floor up, and takes it down in reverse. */
export async function startCore(config: CoreConfig, { log, signal }: Host): Promise<RunningService> {
  const { dataDir } = config;
  await using stack = new AsyncDisposableStack();
  const reserve = new Reserve({ setMib: config.diskReserveMib, log });
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  await reserve.watch(dataDir);
  const database = stack.use(
    await openDatabase<Schema>({
      databaseUrl: config.databaseUrl,
      dataDir: join(dataDir, 'postgres'),
      log,
      signal,
    }),
  );
  if (database.directory !== undefined) await reserve.watch(database.directory);
  await migrate({ pool: database.pool, directory: MIGRATIONS, log });
  const blobs = await openBlobStore(config, join(dataDir, 'files'), reserve);
  const verifier = stack.use(new VerifierPool({ workers: workersOf(config), log }));
  // The host's signal, or our own disposal: either way streams end and the node says that it stops.
  const stop = new AbortController();
  const stopping = AbortSignal.any([signal, stop.signal]);
  /** What runs beside ends with the node, and with a start that fails half-way. */
  const keep = (running: Promise<void>) =>
    stack.defer(() => {
      stop.abort();
      return running;
    });
  keep(reserve.run(stopping));
  const { anchors, indexer: indexing } = await loadAnchorSettings(
    config.anchorFile,
    await loadIndexerSettings(config.indexerFile),
  );
  const indexer = stack.use(await startIndexer({ pool: database.pool, settings: indexing, reserve, log }));
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
    allowPrivate: config.allowPrivate,
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
    reserve,
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
  const announcing = announceOnce(rooms.announce, log);
  await announcing();
  keep(startTrusting(rooms, { signal: stopping, log }));
  keep(
    runLoop({ name: 'upkeep', intervalMs: UPKEEP_INTERVAL_MS, signal: stopping, log }, async () => {
      await announcing();
      await pipeline.expire();
      await eraseForgotten(db, now());
    }),
  );
  const sweep = new Sweep({ db, blobs, claims: rooms.files.claims, graceMs, now, log });
  stack.use(startSweeping(sweep, { signal: stopping, log }));
  const fetcher = stack.use(
    startFetcher({
      db,
      files: rooms.ipfs,
      limitBytes: config.ipfsPinBytes,
      tryMs: config.ipfsPinSeconds * 1000,
      now,
      reserve,
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
  keep(startFetching(rooms, urlsOf(config.peers), { signal: stopping, log }));
  keep(startSyncing(rooms.sync, { signal: stopping, log }));
  stack.use(await startGossip(rooms, config, { signal: stopping, log }));
  const api = await createApi(rooms, log);
  stack.defer(() => api.close());
  stack.defer(() => stop.abort());
  const url = await listen(api, config.host, config.port);
  const owned = stack.move();
  return { urls: [url], [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
