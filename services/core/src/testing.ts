import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createSigner, type MessageDraft, type Signer, signMessage } from '@skerry/client';
import { createLogger, type HttpServer } from '@skerry/kit';
import type { Schema } from './db/schema.ts';
import { createTestDatabase } from './db/testing.ts';
import { createEventLog } from './events/log.ts';
import { createDirectoryBlobStore } from './files/blob-store.ts';
import { Files } from './files/files.ts';
import { createApi } from './http/api.ts';
import type { Rooms } from './http/rooms.ts';
import { startIndexer } from './indexer/indexer.ts';
import { followIndexPosts } from './indexer/posts.ts';
import { type IndexerSettings, NO_NETWORKS } from './indexer/settings.ts';
import { Pipeline } from './messages/pipeline.ts';

/** Keys of the tests: anybody may know them. */
export const signers = {
  alice: createSigner(`0x${'a1'.repeat(32)}`),
  bob: createSigner(`0x${'b0'.repeat(32)}`),
  scheduler: createSigner(`0x${'5c'.repeat(32)}`),
  node: createSigner(`0x${'0d'.repeat(32)}`),
  otherNode: createSigner(`0x${'0e'.repeat(32)}`),
} as const;

export interface TestCore extends AsyncDisposable {
  readonly api: HttpServer;
  readonly rooms: Rooms;
  readonly filesDir: string;
  /** Sends a signed message as a client would. */
  send(signer: Signer, draft: MessageDraft, path?: string, method?: 'POST' | 'PUT'): Promise<TestResponse>;
  /** Sends exactly this body. */
  post(path: string, body: string | Buffer, headers?: Record<string, string>): Promise<TestResponse>;
  get(path: string): Promise<TestResponse>;
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
  readonly now?: () => number;
  readonly indexer?: IndexerSettings;
}

const MIGRATIONS = fileURLToPath(new URL('./db/migrations', import.meta.url));

/** A whole core node without a socket, on a real database of its own. */
export async function createTestCore(options: TestCoreOptions = {}): Promise<TestCore> {
  const log = createLogger('core', 'fatal');
  await using stack = new AsyncDisposableStack();
  const database = stack.use(await createTestDatabase<Schema>({ migrations: MIGRATIONS, log }));
  const filesDir = await mkdtemp(join(tmpdir(), 'skerry-core-'));
  stack.defer(() => rm(filesDir, { recursive: true, force: true }));
  const stop = new AbortController();
  const now = options.now ?? Date.now;
  const db = database.kysely;
  const events = createEventLog(db);
  const pipeline = new Pipeline({ db, events, schedulers: new Set([signers.scheduler.address]), now });
  const files = new Files({ db, blobs: await createDirectoryBlobStore(filesDir), pipeline, now });
  const indexer = stack.use(
    await startIndexer({ pool: database.pool, settings: options.indexer ?? NO_NETWORKS, log }),
  );
  stack.use(followIndexPosts({ db, pool: database.pool, events, indexer, log }));
  const settings = {
    nodeName: 'test',
    allocationWaitMs: options.allocationWaitMs ?? 0,
    uploadLimitBytes: options.uploadLimitBytes ?? 1024 * 1024,
    maxStreams: 4,
  };
  const rooms: Rooms = { db, pipeline, events, files, indexer, now, signal: stop.signal, settings };
  const api = await createApi(rooms, log);
  stack.defer(() => api.close());
  stack.defer(() => stop.abort());
  const owned = stack.move();

  const inject = async (
    method: 'GET' | 'POST' | 'PUT',
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
      body: isJson ? response.json() : response.rawPayload,
    };
  };
  const json = { 'content-type': 'application/json' };
  return {
    api,
    rooms,
    filesDir,
    send: (signer, draft, path = '/messages', method = 'POST') =>
      inject(method, `/api/v0${path}`, signMessage(draft, signer).body, json),
    post: (path, body, headers = json) => inject('POST', `/api/v0${path}`, body, headers),
    get: (path) => inject('GET', `/api/v0${path}`),
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
