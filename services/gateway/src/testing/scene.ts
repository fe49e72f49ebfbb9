import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger, type RunningService, readConfig } from '@skerry/kit';
import { TEST_CACHE } from '../dataplane/native/testing/built.ts';
import { ask } from '../dataplane/testing/suite/http-client.ts';
import { until } from '../dataplane/testing/suite/world.ts';
import { gatewayService } from '../index.ts';
import { readState } from '../sync/store.ts';
import { TestingCore } from '../sync/testing/core.ts';

export const HASH = '5330dcefe1857bcd97b7b7f24d1420a7d46232d53f27be280c8a7071d88bd84e';
export const NAME = 'farm-manage-desk-seek';
export const HOST = `${NAME}.skerry.localhost`;
export const KEY = 'correct-horse-battery-staple';
export const log = createLogger('test', 'silent');

/** A gateway with a core node and one web server on loopback that stands for every instance. */
export class Scene implements AsyncDisposable {
  readonly core = new TestingCore();
  readonly dataDir: string;
  readonly #web = createServer((request, response) => response.end(`for ${request.headers.host}`));
  #gateway: RunningService | undefined;
  #stop = new AbortController();
  settings: Record<string, string> = {};
  log = log;
  /** Resolves when the gateway has stopped of itself. */
  stopped: Promise<void> = Promise.resolve();

  private constructor(dataDir: string) {
    this.dataDir = dataDir;
  }

  static async open(settings: Record<string, string> = {}): Promise<Scene> {
    const scene = new Scene(await mkdtemp(join(tmpdir(), 'skerry-gateway-')));
    await scene.core.open();
    scene.#web.listen(0, '::1');
    await once(scene.#web, 'listening');
    scene.settings = {
      SKERRY_GATEWAY_HTTP_PORT: '0',
      SKERRY_GATEWAY_HTTPS_PORT: '0',
      SKERRY_GATEWAY_API_PORT: '0',
      SKERRY_GATEWAY_CORE_URL: scene.core.url,
      SKERRY_GATEWAY_DATA_DIR: scene.dataDir,
      SKERRY_GATEWAY_CACHE_DIR: TEST_CACHE,
      SKERRY_GATEWAY_API_KEYS: `an-older-key,${KEY}`,
      SKERRY_GATEWAY_ALLOW_LOCAL: 'yes',
      SKERRY_GATEWAY_UPSTREAM_HTTP_PORT: String((scene.#web.address() as AddressInfo).port),
      ...settings,
    };
    return scene;
  }

  async start(): Promise<this> {
    this.#stop = new AbortController();
    const config = readConfig(gatewayService.config, this.settings);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.stopped = promise;
    const replaced = () => void this.#gateway?.[Symbol.asyncDispose]().then(resolve);
    this.#gateway = await gatewayService.start(config, {
      ...{ log: this.log, replaced },
      signal: this.#stop.signal,
    });
    return this;
  }

  async stop(): Promise<void> {
    await this.#gateway?.[Symbol.asyncDispose]();
    this.#gateway = undefined;
  }

  get urls(): readonly string[] {
    return this.#gateway!.urls;
  }

  async api(path: string, options: RequestInit = {}) {
    const response = await fetch(`${this.urls[2]}${path}`, options);
    return {
      status: response.status,
      headers: response.headers,
      body: (await response.json()) as Record<string, unknown>,
    };
  }

  /** The page behind a name, as text. */
  async visit(host = HOST): Promise<string> {
    const answer = await ask(Number(new URL(this.urls[0]!).port), host);
    return String(answer.body);
  }

  async untilActive(active = true): Promise<void> {
    await until(async () => (await this.api(`/api/hash/${HASH}`)).body.active === active);
  }

  /** Until the route is kept for whoever starts on the same data directory. */
  async untilStored(): Promise<void> {
    const policy = { allowLocal: true, allowPrivate: true };
    await until(async () => {
      const stored = await readState(this.dataDir, policy, log);
      return stored?.instances.some(({ hash, ipv6 }) => hash === HASH && ipv6 !== null) === true;
    });
  }

  sync(body?: object, key = KEY) {
    return this.api('/api/sync', {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.core[Symbol.asyncDispose]();
    this.#web.closeAllConnections();
    this.#web.close();
    await rm(this.dataDir, { recursive: true, force: true });
  }
}

export const running = { instance_id: HASH, ipv6: '::1', phase: 'running' } as const;
