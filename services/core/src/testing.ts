import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createSigner, type MessageDraft, type Signer, signMessage } from '@skerry/client';
import { createLogger, type HttpServer, readConfig } from '@skerry/kit';
import { coreConfig } from './config.ts';
import type { Schema } from './db/schema.ts';
import { createTestDatabase } from './db/testing.ts';
import { createDirectoryBlobStore } from './files/blob-store.ts';
import { createApi } from './http/api.ts';
import type { Rooms, RouteSettings } from './http/rooms.ts';
import { createRooms } from './rooms.ts';
import { routeSettingsOf } from './route-settings.ts';
import { inlineVerifier } from './verify/verifier.ts';
import type { SenderSettings } from './webhooks/send.ts';

/** Keys of the tests: anybody may know them. */
export const signers = {
  alice: createSigner(`0x${'a1'.repeat(32)}`),
  bob: createSigner(`0x${'b0'.repeat(32)}`),
  scheduler: createSigner(`0x${'5c'.repeat(32)}`),
  node: createSigner(`0x${'0d'.repeat(32)}`),
  otherNode: createSigner(`0x${'0e'.repeat(32)}`),
} as const;

const HEALTH_TIMEOUT_MS = 300;

export interface TestCore extends AsyncDisposable {
  readonly api: HttpServer;
  readonly rooms: Rooms;
  readonly filesDir: string;
  /** Sends a signed message as a client would. */
  send(signer: Signer, draft: MessageDraft, path?: string, method?: 'POST' | 'PUT'): Promise<TestResponse>;
  /** Sends exactly this body. */
  post(path: string, body: string | Buffer, headers?: Record<string, string>): Promise<TestResponse>;
  get(path: string): Promise<TestResponse>;
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
  readonly now?: () => number;
  readonly settings?: Partial<RouteSettings>;
  readonly webhooks?: SenderSettings;
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
  const rooms = await createRooms({
    database,
    blobs: await createDirectoryBlobStore(filesDir),
    verifier: inlineVerifier,
    dataDir: filesDir,
    schedulers: new Set([signers.scheduler.address]),
    pendingHorizonMs: options.pendingHorizonMs ?? 3_600_000,
    settings: {
      ...routeSettingsOf(readConfig(coreConfig, {})),
      nodeName: 'test',
      allocationWaitMs: options.allocationWaitMs ?? 0,
      uploadLimitBytes: options.uploadLimitBytes ?? 1024 * 1024,
      maxStreams: 4,
      ...options.settings,
    },
    webhooks: options.webhooks,
    now: options.now ?? Date.now,
    signal: stop.signal,
    log,
    isProcess: false,
    healthTimeoutMs: HEALTH_TIMEOUT_MS,
  });
  stack.defer(() => rooms.pipeline.close());
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
