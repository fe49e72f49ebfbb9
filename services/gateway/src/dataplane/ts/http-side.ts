import { type DataPlaneOptions, DEFAULT_LIMITS } from '../port.ts';
import { createHttpListener, type HttpListener } from './http-listener.ts';
import { countConnections, drainListeners, openTogether, type PortUse, shut } from './listening.ts';
import type { RouteTable } from './routes.ts';

/** Plain HTTP on every address: the same for every data plane. */
export class HttpSide {
  readonly #options: DataPlaneOptions;
  readonly #listeners: readonly HttpListener[];
  readonly #counters = { requests: 0 };

  constructor(options: DataPlaneOptions, routes: RouteTable) {
    this.#options = options;
    const one = {
      routes,
      limits: { ...DEFAULT_LIMITS, ...options.limits },
      explain: options.explain,
      upstreamPort: options.upstreamHttpPort,
      counters: this.#counters,
    };
    this.#listeners = options.hosts.map(() => createHttpListener(one));
  }

  get open(): number {
    return countConnections(this.#listeners);
  }

  get requests(): number {
    return this.#counters.requests;
  }

  async listen(use: PortUse): Promise<number> {
    const { hosts, httpPort } = this.#options;
    const servers = this.#listeners.map(({ server }) => server);
    return await openTogether(servers, hosts, httpPort, use);
  }

  async drain(timeoutMs: number): Promise<void> {
    await drainListeners(this.#listeners, timeoutMs, () => {
      for (const listener of this.#listeners) listener.release();
    });
  }

  async close(): Promise<void> {
    for (const listener of this.#listeners) listener.close();
    await Promise.all(this.#listeners.map(shut));
  }
}
