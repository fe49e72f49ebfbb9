import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type MessageDraft, type Signer, signMessage } from '@skerry/client';
import type { Database } from '@skerry/database';
import { type DiskReserve, Reserve, type Standby } from '@skerry/database';
import { createTestDatabase } from '@skerry/database/testing';
import { type IndexerSettings, NO_NETWORKS, startIndexer } from '@skerry/indexer';
import { createLogger, type HttpServer, type Logger, listen, rateLimitsOf, readConfig } from '@skerry/kit';
import type { Pool } from 'pg';
import { createApi } from '../api/api.ts';
import type { RouteSettings } from '../api/rooms.ts';
import { followIndexPosts } from '../chains/index-posts.ts';
import { type CoreConfig, coreConfig } from '../config.ts';
import { inlineVerifier, type Verifier } from '../intake/verify/verifier.ts';
import type { SenderSettings } from '../notify/webhooks/delivery/send.ts';
import type { TrustConfig } from '../open-trust.ts';
import type { PeerLink } from '../peers/sync/link.ts';
import { type CoreRooms, type Ground, openRooms, routeRoomsOf } from '../rooms.ts';
import type { BlobStore } from '../store/files/blob-store.ts';
import { createDirectoryBlobStore } from '../store/files/directory-store.ts';
import type { Pieces } from '../store/files/parts/shared-place.ts';
import { IpfsFetcher } from '../store/ipfs/fetcher.ts';
import type { BlockSource } from '../store/ipfs/gateways.ts';
import type { Schema } from '../store/schema.ts';
import { createQuickSigner } from './quick-signer.ts';

/** Keys of the tests: anybody may know them. */
export const signers = {
  alice: createQuickSigner(`0x${'a1'.repeat(32)}`),
  bob: createQuickSigner(`0x${'b0'.repeat(32)}`),
  scheduler: createQuickSigner(`0x${'5c'.repeat(32)}`),
  monitor: createQuickSigner(`0x${'30'.repeat(32)}`),
  credit: createQuickSigner(`0x${'c4'.repeat(32)}`),
  node: createQuickSigner(`0x${'0d'.repeat(32)}`),
  otherNode: createQuickSigner(`0x${'0e'.repeat(32)}`),
} as const;

/** Anybody may know it, too. */
export const OPERATOR_TOKEN = 'operator of the tests';

/** Only what never answers takes this long. */
const PATIENCE_MS = 60_000;

/** Where its operator says that it is. */
export const CORE_PLACE = 'https://core.example.org';

export interface TestCore extends AsyncDisposable {
  readonly api: HttpServer;
  readonly rooms: CoreRooms;
  readonly fetcher: IpfsFetcher;
  readonly filesDir: string;
  readonly blobs: BlobStore;
  /** Sends a signed message as a client would. */
  send(signer: Signer, draft: MessageDraft, path?: string, method?: 'POST' | 'PUT'): Promise<TestResponse>;
  /** Sends exactly this body. */
  post(path: string, body: string | Buffer, headers?: Record<string, string>): Promise<TestResponse>;
  get(path: string, headers?: Record<string, string>, method?: 'GET' | 'HEAD'): Promise<TestResponse>;
  /** Serves at a port of its own, for other processes; gives where. */
  listen(): Promise<string>;
  /** The server ends this core's connections and lets no new one in, as when it is stopped. */
  loseDatabase(): Promise<void>;
  /** As the signal of the process does: streams end, health says so. Requests are still answered. */
  stop(): void;
}

export interface TestResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came back
  readonly body: any;
}

export interface TestCoreOptions {
  readonly allocationWaitMs?: number;
  readonly uploadLimitBytes?: number;
  readonly pendingHorizonMs?: number;
  readonly creditEnforcement?: boolean;
  /** Whom the settings name, in place of the keys of tests; undefined: nobody said so. */
  readonly trust?: TrustConfig;
  readonly trustUrls?: readonly string[];
  readonly now?: () => number;
  readonly uptime?: (() => number) | undefined;
  /** One that the caller made and disposes of; a new one where left out. */
  readonly database?: Database<Schema>;
  /** Of the new one. */
  readonly connectionsMax?: number;
  readonly log?: Logger;
  readonly settings?: Partial<RouteSettings>;
  readonly indexer?: IndexerSettings;
  readonly blobs?: BlobStore;
  readonly pieces?: Pieces;
  readonly reserve?: DiskReserve;
  readonly writeProbe?: Ground['writeProbe'];
  readonly webhooks?: Pick<SenderSettings, 'allowHttp' | 'allowedAddresses' | 'timeoutMs'>;
  /** Whether programs are sent to nodes at private addresses; so unless said otherwise, since all of a test is on loopback. */
  readonly allowPrivate?: boolean;
  readonly ipfs?: {
    readonly rpcUrl?: string;
    readonly gateways?: readonly string[];
    readonly timeoutMs?: number;
  };
  /** In the place of gateways: another way to ask for blocks. */
  readonly blockSource?: BlockSource;
  readonly fileGraceMs?: number;
  readonly peers?: readonly PeerLink[];
  readonly standby?: Standby;
  /** Whether it does what one process of several does alone; so unless said otherwise. */
  readonly isLeading?: () => boolean;
  /** One that recovers each signature where left out. */
  readonly verifier?: Verifier;
}

const trustTestKeys = (creditEnforcement = false): TrustConfig => ({
  schedulers: [signers.scheduler.address],
  scoringPublishers: [signers.monitor.address],
  creditPublishers: [signers.credit.address],
  knownCoreNodes: [signers.node.address],
  creditEnforcement,
});

/** The settings of the node that a test asks for. */
function configOf(options: TestCoreOptions, dataDir: string): CoreConfig {
  const { webhooks = {}, ipfs = {} } = options;
  const usual = readConfig(coreConfig, {});
  const { limits: _, ...changed } = options.settings ?? {};
  return {
    ...usual,
    ...(options.trust ?? trustTestKeys(options.creditEnforcement)),
    name: 'test',
    urls: [CORE_PLACE],
    dataDir,
    peers: [...(options.trustUrls ?? [])],
    allocationWaitMs: options.allocationWaitMs ?? 0,
    uploadLimitBytes: options.uploadLimitBytes ?? 1024 * 1024,
    operatorToken: OPERATOR_TOKEN,
    maxStreams: 4,
    streamReserve: 0,
    ipfsPinWaitMs: 0,
    pendingHorizonSeconds: (options.pendingHorizonMs ?? 3_600_000) / 1000,
    fileGraceMinutes: (options.fileGraceMs ?? 86_400_000) / 60_000,
    webhookAllowHttp: webhooks.allowHttp ?? usual.webhookAllowHttp,
    webhookAllowAddresses: [...(webhooks.allowedAddresses ?? usual.webhookAllowAddresses)],
    webhookTimeoutMs: webhooks.timeoutMs ?? usual.webhookTimeoutMs,
    ipfsRpcUrl: ipfs.rpcUrl,
    ipfsGateways: [...(ipfs.gateways ?? [])],
    ipfsTimeoutMs: ipfs.timeoutMs ?? PATIENCE_MS,
    allowPrivate: options.allowPrivate ?? true,
    ...changed,
  };
}

export const MIGRATIONS = fileURLToPath(new URL('../store/migrations', import.meta.url));

/** As when the server stops: connections end, and no new one can be had. */
async function loseDatabase(pool: Pool): Promise<void> {
  const client = await pool.connect();
  Object.assign(pool.options, { connectionString: 'postgresql://nobody@%2Fnowhere/nothing' });
  await client.query(
    'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
  );
  client.release(true);
}

/** However full the machine is that runs the tests, they go on. */
async function watchDisk(directory: string, log: Logger): Promise<DiskReserve> {
  const reserve = new Reserve({ setMib: 1, log });
  await reserve.watch(directory);
  return reserve;
}

/**
 * What a first start derives from an empty database is done once: it is three quarters of a start's statements. Not so where a
 * test has its own trust.
 */
const STARTED_BEFORE = {
  name: 'a core node that trusts the keys of tests',
  async fill(database: Database<unknown>) {
    await using _core = await createTestCore({ database: database as Database<Schema> });
  },
};

async function makeDatabase({ trust, creditEnforcement, connectionsMax }: TestCoreOptions, log: Logger) {
  const prepared = trust === undefined && !creditEnforcement ? STARTED_BEFORE : undefined;
  return await createTestDatabase<Schema>({ migrations: MIGRATIONS, prepared, connectionsMax, log });
}

/** A whole core node without a socket, on a real database of its own. */
export async function createTestCore(options: TestCoreOptions = {}): Promise<TestCore> {
  const log = options.log ?? createLogger('core', 'fatal');
  await using stack = new AsyncDisposableStack();
  const database = options.database ?? stack.use(await makeDatabase(options, log));
  const filesDir = await mkdtemp(join(tmpdir(), 'skerry-core-'));
  stack.defer(() => rm(filesDir, { recursive: true, force: true }));
  const stop = new AbortController();
  const reserve = options.reserve ?? (await watchDisk(filesDir, log));
  const blobs = options.blobs ?? (await createDirectoryBlobStore(filesDir, { reserve }));
  const config = configOf(options, filesDir);
  const indexer = stack.use(
    await startIndexer({ pool: database.pool, settings: options.indexer ?? NO_NETWORKS, log }),
  );
  const rooms = await openRooms(config, {
    ...{ database, blobs, indexer, reserve, log },
    verifier: options.verifier ?? inlineVerifier,
    links: options.peers ?? [],
    ...(options.pieces && { pieces: options.pieces }),
    ...(options.writeProbe && { writeProbe: options.writeProbe }),
    ...(options.standby && { standby: options.standby }),
    ...(options.isLeading && { isLeading: options.isLeading }),
    // No time passes for the rate limits: however slow the machine, a rate is used up by its requests.
    limits: options.settings?.limits ?? { ...rateLimitsOf(config), now: () => 0 },
    now: options.now ?? Date.now,
    uptime: options.uptime,
    blockSource: options.blockSource,
    signal: stop.signal,
    isProcess: false,
    healthTimeoutMs: PATIENCE_MS,
  });
  stack.defer(() => rooms.pipeline.close());
  const { db, events, now } = rooms;
  const creditPublishers = rooms.trust.setOf('credit_publishers');
  stack.use(followIndexPosts({ db, pool: database.pool, events, indexer, creditPublishers, now, log }));
  const fetcher = stack.use(
    new IpfsFetcher({
      db: rooms.db,
      files: rooms.ipfs,
      limitBytes: 64 * 1024 * 1024,
      tryMs: 2 * PATIENCE_MS,
      now: rooms.now,
      reserve,
      log,
    }),
  );
  await rooms.deriveTrust();
  await rooms.sync.load();
  const api = await createApi(routeRoomsOf(rooms, { addresses: () => [] }), log);
  stack.defer(() => api.close());
  stack.defer(() => stop.abort());
  const owned = stack.move();

  const inject = async (
    method: 'GET' | 'HEAD' | 'POST' | 'PUT',
    url: string,
    payload?: string | Buffer,
    headers: Record<string, string> = {},
  ) => {
    const response = await api.inject({
      method,
      url,
      headers,
      ...(payload === undefined ? {} : { payload }),
    });
    const isJson = String(response.headers['content-type']).includes('application/json');
    return {
      status: response.statusCode,
      headers: response.headers,
      body: isJson && method !== 'HEAD' ? response.json() : response.rawPayload,
    };
  };
  const json = { 'content-type': 'application/json' };
  return {
    api,
    rooms,
    fetcher,
    filesDir,
    blobs,
    send: (signer, draft, path = '/messages', method = 'POST') =>
      inject(method, `/api/v0${path}`, signMessage(draft, signer).body, json),
    post: (path, body, headers = json) => inject('POST', `/api/v0${path}`, body, headers),
    get: (path, headers = {}, method = 'GET') => inject(method, `/api/v0${path}`, undefined, headers),
    listen: () => listen(api, '127.0.0.1', 0),
    loseDatabase: () => loseDatabase(database.pool),
    stop: () => stop.abort(),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

export const SSH_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Fh0uVwOqkFZkP3kCq5p8v0wYVqX5b0pD8kT3C1xYz test@skerry';

export const instanceContent = {
  name: 'web',
  description: 'a test',
  cpu: 1,
  memory: 512,
  disk: 4,
  image: 'debian:12',
  ssh_key: SSH_KEY,
  firewall: { allowedPorts: [22, 80] },
};
