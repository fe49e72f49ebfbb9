import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createSigner, type MessageDraft, type Signer, signMessage } from '@skerry/client';
import { createLogger, type HttpServer, type Logger, listen, readConfig } from '@skerry/kit';
import type { Pool } from 'pg';
import { coreConfig } from './config.ts';
import type { Database } from './db/connect.ts';
import type { Schema } from './db/schema.ts';
import { createTestDatabase } from './db/testing.ts';
import { type DiskReserve, Reserve } from './disk/reserve.ts';
import type { BlobStore } from './files/blob-store.ts';
import { createDirectoryBlobStore } from './files/directory-store.ts';
import { createApi } from './http/api.ts';
import type { Rooms, RouteSettings } from './http/rooms.ts';
import { startIndexer } from './indexer/indexer.ts';
import { followIndexPosts } from './indexer/posts.ts';
import { type IndexerSettings, NO_NETWORKS } from './indexer/settings.ts';
import { ALONE, type IpfsSettings } from './ipfs/choose-ipfs.ts';
import { type Fetcher, startFetcher } from './ipfs/fetcher.ts';
import { createRooms, type RoomOptions } from './rooms.ts';
import { routeSettingsOf } from './route-settings.ts';
import type { PeerLink } from './sync/link.ts';
import { inlineVerifier } from './verify/verifier.ts';
import type { SenderSettings } from './webhooks/send.ts';

/** Keys of the tests: anybody may know them. */
export const signers = {
  alice: createSigner(`0x${'a1'.repeat(32)}`),
  bob: createSigner(`0x${'b0'.repeat(32)}`),
  scheduler: createSigner(`0x${'5c'.repeat(32)}`),
  monitor: createSigner(`0x${'30'.repeat(32)}`),
  credit: createSigner(`0x${'c4'.repeat(32)}`),
  node: createSigner(`0x${'0d'.repeat(32)}`),
  otherNode: createSigner(`0x${'0e'.repeat(32)}`),
} as const;

const HEALTH_TIMEOUT_MS = 3_000;

export interface TestCore extends AsyncDisposable {
  readonly api: HttpServer;
  readonly rooms: Rooms;
  readonly fetcher: Fetcher;
  readonly filesDir: string;
  readonly blobs: BlobStore;
  /** Sends a signed message as a client would. */
  send(signer: Signer, draft: MessageDraft, path?: string, method?: 'POST' | 'PUT'): Promise<TestResponse>;
  /** Sends exactly this body. */
  post(path: string, body: string | Buffer, headers?: Record<string, string>): Promise<TestResponse>;
  get(path: string, headers?: Record<string, string>, method?: 'GET' | 'HEAD'): Promise<TestResponse>;
  /** The server ends this core's connections and lets no new one in, as when it is stopped. */
  /** Serves at a port of its own, for other processes; gives where. */
  listen(): Promise<string>;
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
  readonly trust?: Pick<
    RoomOptions,
    'schedulers' | 'publishers' | 'creditPublishers' | 'coreNodes' | 'creditEnforcement'
  >;
  readonly trustUrls?: readonly string[];
  readonly now?: () => number;
  readonly uptime?: (() => number) | undefined;
  /** One that the caller made and disposes of; a new one where left out. */
  readonly database?: Database<Schema>;
  readonly log?: Logger;
  readonly settings?: Partial<RouteSettings>;
  readonly indexer?: IndexerSettings;
  readonly blobs?: BlobStore;
  readonly reserve?: DiskReserve;
  readonly webhooks?: SenderSettings;
  /** Whether programs are sent to nodes at private addresses; so unless said otherwise, since all of a test is on loopback. */
  readonly allowPrivate?: boolean;
  readonly ipfs?: Partial<IpfsSettings>;
  readonly fileGraceMs?: number;
  readonly peers?: readonly PeerLink[];
}

export const MIGRATIONS = fileURLToPath(new URL('./db/migrations', import.meta.url));

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

/** A whole core node without a socket, on a real database of its own. */
export async function createTestCore(options: TestCoreOptions = {}): Promise<TestCore> {
  const log = options.log ?? createLogger('core', 'fatal');
  await using stack = new AsyncDisposableStack();
  const database =
    options.database ?? stack.use(await createTestDatabase<Schema>({ migrations: MIGRATIONS, log }));
  const filesDir = await mkdtemp(join(tmpdir(), 'skerry-core-'));
  stack.defer(() => rm(filesDir, { recursive: true, force: true }));
  const stop = new AbortController();
  const reserve = options.reserve ?? (await watchDisk(filesDir, log));
  const blobs = options.blobs ?? (await createDirectoryBlobStore(filesDir, reserve));
  const settings = routeSettingsOf(readConfig(coreConfig, {}));
  const indexer = stack.use(
    await startIndexer({ pool: database.pool, settings: options.indexer ?? NO_NETWORKS, log }),
  );
  const rooms = await createRooms({
    indexer,
    database,
    blobs,
    verifier: inlineVerifier,
    dataDir: filesDir,
    ...(options.trust ?? {
      schedulers: new Set([signers.scheduler.address]),
      publishers: new Set([signers.monitor.address]),
      creditPublishers: new Set([signers.credit.address]),
      coreNodes: new Set([signers.node.address]),
      creditEnforcement: options.creditEnforcement ?? false,
    }),
    trustUrls: options.trustUrls,
    pendingHorizonMs: options.pendingHorizonMs ?? 3_600_000,
    vrfKeyEpoch: 1,
    settings: {
      ...settings,
      // No time passes for the rate limits: however slow the machine, a rate is used up by its requests.
      limits: { ...settings.limits, now: () => 0 },
      nodeName: 'test',
      allocationWaitMs: options.allocationWaitMs ?? 0,
      uploadLimitBytes: options.uploadLimitBytes ?? 1024 * 1024,
      maxStreams: 4,
      streamReserve: 0,
      ipfsPinWaitMs: 0,
      ...options.settings,
    },
    webhooks: options.webhooks,
    allowPrivate: options.allowPrivate ?? true,
    ipfs: { ...ALONE, ...options.ipfs },
    fileGraceMs: options.fileGraceMs ?? 86_400_000,
    reserve,
    peers: options.peers,
    now: options.now ?? Date.now,
    uptime: options.uptime,
    signal: stop.signal,
    log,
    isProcess: false,
    healthTimeoutMs: HEALTH_TIMEOUT_MS,
  });
  stack.defer(() => rooms.pipeline.close());
  stack.use(followIndexPosts({ db: rooms.db, pool: database.pool, events: rooms.events, indexer, log }));
  const fetcher = stack.use(
    startFetcher({
      db: rooms.db,
      files: rooms.ipfs,
      limitBytes: 64 * 1024 * 1024,
      tryMs: 30_000,
      now: rooms.now,
      reserve,
      log,
    }),
  );
  await rooms.deriveTrust();
  await rooms.sync.load();
  const api = await createApi(rooms, log);
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
