import { type DataPlaneOptions, DEFAULT_LIMITS, type HttpCounts, type HttpRefusal } from '../../port.ts';
import { Counts } from '../counts.ts';
import { countConnections, drainListeners, openTogether, type PortUse, shut } from '../listening.ts';
import type { Routed, RouteTable } from '../routes.ts';
import { Stalls } from '../stalls/stalls.ts';
import { HttpJournal } from './journal.ts';
import { createHttpListener, type HttpListener } from './listener.ts';

/** Of what stalled receivers of TLS may hold, those of plain HTTP may one of so many parts. */
const STALLED_PARTS = 2;

/** Plain HTTP on every address: the same for every data plane. */
export class HttpSide {
  readonly #options: DataPlaneOptions;
  readonly #listeners: readonly HttpListener[];
  readonly #journal: HttpJournal;
  readonly #counters = { requests: 0, yielded: 0 };
  readonly #stalls: Stalls;

  constructor(options: DataPlaneOptions, routes: RouteTable) {
    this.#options = options;
    this.#journal = new HttpJournal(options);
    const limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.#stalls = new Stalls({ ...options, limitBytes: limits.maxStalledBytes, parts: STALLED_PARTS });
    const one = {
      routes,
      limits,
      explain: options.explain,
      upstreamPort: options.upstreamHttpPort,
      counters: this.#counters,
      journal: this.#journal,
      stalls: this.#stalls,
      perInstance: new Counts<Routed>(limits.maxPerInstance),
    };
    this.#listeners = options.hosts.map(() => createHttpListener(one));
  }

  get open(): number {
    return countConnections(this.#listeners);
  }

  get requests(): number {
    return this.#counters.requests;
  }

  get yielded(): number {
    return this.#counters.yielded;
  }

  get stalledBytes(): number {
    return this.#stalls.heldBytes;
  }

  /** Of requests that are over. */
  get counts(): HttpCounts {
    return this.#journal.counts;
  }

  /** Of requests and of connections that never came to one. */
  get refusals(): Readonly<Record<HttpRefusal, number>> {
    return this.#journal.refusals;
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
