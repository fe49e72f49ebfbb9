import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createWrite, migrate, openDatabase, Reserve } from '@skerry/database';
import { loadIndexerSettings, startIndexer } from '@skerry/indexer';
import { type Host, listen, makeDirectory, persist, type RunningService, runLoop } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { Pool } from 'pg';
import { createApi } from './api/api.ts';
import { startAnchoring } from './chains/anchoring/anchoring.ts';
import { watchAnchoring } from './chains/anchoring/metrics.ts';
import { type AnchorSettings, loadAnchorSettings } from './chains/anchoring/settings.ts';
import { followIndexPosts } from './chains/index-posts.ts';
import type { CoreConfig } from './config.ts';
import { eraseForgotten } from './intake/erase.ts';
import { buildBatchAddon } from './intake/verify/batch/addon.ts';
import { VerifierPool } from './intake/verify/pool.ts';
import { watchFetcher } from './node/metrics/metrics.ts';
import { createDispatchObserver, startDeliverer } from './notify/webhooks/delivery/deliverer.ts';
import { startGossip } from './peers/p2p/start.ts';
import { createPeerFileSource } from './peers/sync/file-source.ts';
import { createHttpLink } from './peers/sync/link.ts';
import { LOOK_MS } from './peers/sync/set-follower.ts';
import type { Sync } from './peers/sync/sync.ts';
import { type CoreRooms, type Ground, graceMsOf, openRooms, routeRoomsOf, urlsOf } from './rooms.ts';
import type { BlobStore } from './store/files/blob-store.ts';
import { openBlobStore } from './store/files/choose-store.ts';
import { FileFetcher } from './store/files/fetcher.ts';
import { Sweep, startSweeping } from './store/files/sweep.ts';
import { IpfsFetcher } from './store/ipfs/fetcher.ts';
import { startIpfsUpkeep } from './store/ipfs/ipfs-files.ts';
import type { Schema } from './store/schema.ts';

const MIGRATIONS = fileURLToPath(new URL('./store/migrations', import.meta.url));

/** How often what is pending for too long, and what was forgotten long ago, is looked for. */
const UPKEEP_INTERVAL_MS = 10_000;

/** One core is left to the thread that answers requests. */
const workersOf = ({ verifyWorkers }: Pick<CoreConfig, 'verifyWorkers'>) =>
  verifyWorkers || Math.max(1, availableParallelism() - 1);

/** From the start of the node to its stop. */
interface Life extends Host {
  /** Ends in reverse. */
  readonly stack: AsyncDisposableStack;
  /** What runs beside ends with the node, and with a start that fails half-way. */
  keep(running: Promise<void>): void;
  stop(): void;
}

/** Ends with the host's signal or our own disposal: either way streams end and the node says that it stops. */
function beginLife(stack: AsyncDisposableStack, { signal, ...host }: Host): Life {
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  return {
    ...host,
    signal: AbortSignal.any([signal, stopping.signal]),
    stack,
    stop,
    keep: (running) =>
      stack.defer(() => {
        stop();
        return running;
      }),
  };
}

/** What the rooms stand on. The database heeds the host alone: it is closed after all that uses it. */
async function openGround(
  config: CoreConfig,
  { stack, keep, signal: stopping }: Life,
  { signal, log, longStep }: Host,
): Promise<Ground & { readonly anchors: readonly AnchorSettings[] }> {
  const { dataDir, databaseUrl } = config;
  const reserve = new Reserve({ setMib: config.diskReserveMib, log });
  await makeDirectory(dataDir);
  await reserve.watch(dataDir);
  using _ = longStep?.('opening the database, and bringing it up to date');
  const database = stack.use(
    await openDatabase<Schema>({ databaseUrl, dataDir: join(dataDir, 'postgres'), log, signal }),
  );
  const { pool } = database;
  if (database.directory !== undefined) await reserve.watch(database.directory);
  await migrate({ pool, directory: MIGRATIONS, log });
  const blobs = await openBlobStore(config, join(dataDir, 'files'), reserve);
  const { cacheDir } = config;
  const prepareBatches = (aborted: AbortSignal) => buildBatchAddon(cacheDir, aborted);
  const verifier = stack.use(
    new VerifierPool({
      workers: workersOf(config),
      prepareBatches: config.signatureBatches ? prepareBatches : undefined,
      log,
    }),
  );
  keep(reserve.run(stopping));
  const { anchors, indexer: indexed } = await loadAnchorSettings(
    config.anchorFile,
    await loadIndexerSettings(config.indexerFile),
  );
  return {
    ...{ database, blobs, verifier, reserve, anchors, log },
    indexer: stack.use(await startIndexer({ pool, settings: indexed, reserve, log })),
    links: urlsOf(config).map(createHttpLink),
    now: Date.now,
    signal: stopping,
    isProcess: true,
  };
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
      log.warn({ reason: error.message }, "this node's keys will be announced when its disk has space");
    }
  };
}

/** How often peers are asked whom they trust. */
const TRUST_INTERVAL_MS = 10_000;

/** What has to be so before anybody asks, and the loops that keep it so. */
async function settle(
  rooms: Pick<CoreRooms, 'db' | 'pipeline' | 'learnTrust' | 'deriveTrust' | 'announce' | 'now'>,
  { keep, signal, log, longStep }: Life,
): Promise<void> {
  using _ = longStep?.('deciding the messages that an earlier process had left');
  const { db, pipeline, learnTrust, deriveTrust, now } = rooms;
  // What the node would answer hangs on it.
  await learnTrust();
  // What an earlier process had left in line.
  await pipeline.idle();
  const announce = announceOnce(rooms.announce, log);
  await announce();
  keep(
    // What is stored is derived again beside everything else.
    runLoop({ name: 'trust', intervalMs: TRUST_INTERVAL_MS, signal, log }, async () => {
      await learnTrust();
      await deriveTrust();
    }),
  );
  keep(
    runLoop({ name: 'upkeep', intervalMs: UPKEEP_INTERVAL_MS, signal, log }, async () => {
      await announce();
      await pipeline.expire();
      // Another process on the database may have ended with a line.
      pipeline.resume();
      await eraseForgotten(db, now());
    }),
  );
}

/** Lets go of files that nothing keeps, and brings those of IPFS that messages name. */
function startKeepingFiles(
  config: Pick<CoreConfig, 'fileGraceMinutes' | 'ipfsPinBytes' | 'ipfsPinSeconds'>,
  rooms: Pick<CoreRooms, 'db' | 'files' | 'ipfs' | 'metrics' | 'reserve' | 'now'>,
  blobs: BlobStore,
  { stack, signal, log }: Life,
): void {
  const { db, files, ipfs, metrics, reserve, now } = rooms;
  const sweep = new Sweep({ db, blobs, claims: files.claims, graceMs: graceMsOf(config), now, log });
  stack.use(startSweeping(sweep, { signal, log }));
  const limits = { limitBytes: config.ipfsPinBytes, tryMs: config.ipfsPinSeconds * 1000 };
  watchFetcher(metrics, stack.use(new IpfsFetcher({ db, files: ipfs, ...limits, now, reserve, log })));
  stack.use(startIpfsUpkeep(ipfs, { signal, log }));
}

/** Reads archives from chains, and packs them. */
async function startChains(
  anchors: readonly AnchorSettings[],
  rooms: Pick<CoreRooms, 'db' | 'intake' | 'events' | 'ipfs' | 'metrics' | 'reserve' | 'now'>,
  pool: Pool,
  { stack, log }: Life,
): Promise<void> {
  const { db, intake, events, ipfs: files, metrics, reserve, now } = rooms;
  const write = createWrite<Schema>(pool);
  const anchoring = stack.use(
    await startAnchoring({ pool, db, write, files, intake, events, anchors, now, reserve, log }),
  );
  watchAnchoring(metrics, { db, pool, anchors, anchoring });
}

function startWebhooks(
  rooms: Pick<CoreRooms, 'db' | 'events' | 'secrets' | 'sender' | 'metrics' | 'reserve' | 'now'>,
  { stack, log }: Life,
): void {
  const { db, events, secrets, sender, metrics, reserve, now } = rooms;
  const observer = createDispatchObserver(metrics.own);
  stack.use(startDeliverer({ db, events, secrets, sender, observer, now, reserve, log }));
}

/** How often files that messages lack are looked for. */
const FETCH_INTERVAL_MS = 1_000;

async function fetchFiles(
  rooms: Pick<CoreRooms, 'db' | 'files' | 'sync' | 'metrics' | 'reserve' | 'now'>,
  urls: readonly string[],
  { signal, log }: Host,
): Promise<void> {
  const { db, files, sync, metrics, reserve, now } = rooms;
  const { reputation } = sync.syncer;
  const sources = urls.map((url) => createPeerFileSource(url, () => reputation.noteMisbehaved(url)));
  const fetcher = new FileFetcher({ db, files, sources, now, reserve, log });
  metrics.tell(() => ({
    pyaleph_store_fetch_storage_total: fetcher.counts.fetched + fetcher.counts.failed,
    pyaleph_store_fetch_storage_failed_total: fetcher.counts.failed,
    pyaleph_store_fetch_storage_duration_ms_sum: Math.round(fetcher.counts.elapsedMs),
  }));
  const heard = new Set<string>();
  await runLoop({ name: 'files of peers', intervalMs: FETCH_INTERVAL_MS, signal, log }, async () => {
    let isBack = false;
    for (const { name, state } of sync.syncer.view().peers) {
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
async function keepInStep(sync: Sync, { signal, log }: Host): Promise<void> {
  const options = { ...LOAD_RETRY_MS, signal, log };
  await persist({ name: 'reading the keys of all messages', ...options }, () => sync.load());
  await Promise.all([
    persist({ name: 'keeping in step with peers', ...options }, () => sync.syncer.run(signal)),
    runLoop({ name: 'what other processes wrote', intervalMs: LOOK_MS, signal, log }, () => sync.look()),
  ]);
}

/** Builds the core node from the floor up, and takes it down in reverse. */
export async function startCore(config: CoreConfig, host: Host): Promise<RunningService> {
  await using stack = new AsyncDisposableStack();
  const life = beginLife(stack, host);
  const { signal, log, keep } = life;
  const ground = await openGround(config, life, host);
  const { database, indexer, blobs, anchors } = ground;
  const rooms = await openRooms(config, ground);
  const { db, pipeline, events, sync } = rooms;
  stack.use(followIndexPosts({ db, pool: database.pool, events, indexer, log }));
  stack.defer(() => pipeline.close());
  await settle(rooms, life);
  startKeepingFiles(config, rooms, blobs, life);
  await startChains(anchors, rooms, database.pool, life);
  startWebhooks(rooms, life);
  keep(fetchFiles(rooms, urlsOf(config), { signal, log }));
  keep(keepInStep(sync, { signal, log }));
  const gossip = stack.use(await startGossip(rooms, config, { signal, log }));
  const api = await createApi(routeRoomsOf(rooms, gossip), log);
  stack.defer(() => api.close());
  stack.defer(() => life.stop());
  const url = await listen(api, config.host, config.port);
  const owned = stack.move();
  return { urls: [url], [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
