import type { Attempts, Route, RouteChange, RouteFailure, Traffic } from '../port.ts';

/** How many instances' last attempts are remembered. */
const MAX_ATTEMPTS = 10_000;

/** How many instances' traffic is remembered: those that were busy last. */
const MAX_TRAFFIC = 10_000;

type Times = Omit<Attempts, 'open' | 'traffic'>;
const NO_TRAFFIC: Traffic = {
  since: null,
  connections: 0,
  bytesToInstance: 0,
  bytesToClient: 0,
  requests: 0,
};
const NO_ATTEMPT: Times = { connectedAt: null, failedAt: null, failure: null };

/** Host name to address, as it is looked up once for each connection or request, and how attempts to connect went. */
export class RouteTable {
  readonly #addresses = new Map<string, string>();
  /** Few ask for the header, so it costs the others nothing. */
  readonly #withProxyHeader = new Set<string>();
  readonly #attempts = new Map<string, Times>();
  readonly #traffic = new Map<string, Traffic>();

  get size(): number {
    return this.#addresses.size;
  }

  get(hostname: string): string | undefined {
    return this.#addresses.get(hostname);
  }

  wantsProxyHeader(hostname: string): boolean {
    return this.#withProxyHeader.has(hostname);
  }

  replace(routes: Iterable<Route>): void {
    this.#addresses.clear();
    this.#withProxyHeader.clear();
    this.apply(routes);
  }

  apply(changes: Iterable<RouteChange>): void {
    for (const { hostname, ipv6, proxyHeader } of changes) {
      if (ipv6 === null) this.#addresses.delete(hostname);
      else this.#addresses.set(hostname, ipv6);
      if (proxyHeader && ipv6 !== null) this.#withProxyHeader.add(hostname);
      else this.#withProxyHeader.delete(hostname);
      this.#attempts.delete(hostname);
      this.#traffic.delete(hostname);
    }
  }

  *routes(): Generator<Route> {
    for (const [hostname, ipv6] of this.#addresses)
      yield { hostname, ipv6, proxyHeader: this.#withProxyHeader.has(hostname) };
  }

  /** @param failure undefined where it came about */
  noteAttempt(hostname: string, failure?: RouteFailure): void {
    const before = this.#attempts.get(hostname) ?? NO_ATTEMPT;
    const now = Math.floor(Date.now() / 1000);
    if (failure === undefined && before.connectedAt === now) return;
    this.#attempts.delete(hostname);
    this.#attempts.set(
      hostname,
      failure === undefined ? { ...before, connectedAt: now } : { ...before, failedAt: now, failure },
    );
    if (this.#attempts.size > MAX_ATTEMPTS) this.#attempts.delete(this.#attempts.keys().next().value!);
  }

  #count(hostname: string, add: (before: Traffic) => Partial<Traffic>): void {
    const before = this.#traffic.get(hostname) ?? { ...NO_TRAFFIC, since: Math.floor(Date.now() / 1000) };
    this.#traffic.delete(hostname);
    this.#traffic.set(hostname, { ...before, ...add(before) });
    if (this.#traffic.size > MAX_TRAFFIC) this.#traffic.delete(this.#traffic.keys().next().value!);
  }

  countConnection(hostname: string): void {
    this.#count(hostname, ({ connections }) => ({ connections: connections + 1 }));
  }

  countRequest(hostname: string): void {
    this.#count(hostname, ({ requests }) => ({ requests: requests + 1 }));
  }

  /** Of a connection that has ended; nothing where its route is gone or forgotten. */
  countBytes(hostname: string, toInstance: number, toClient: number): void {
    if (!this.#traffic.has(hostname)) return;
    this.#count(hostname, ({ bytesToInstance, bytesToClient }) => ({
      bytesToInstance: bytesToInstance + toInstance,
      bytesToClient: bytesToClient + toClient,
    }));
  }

  traffic(hostname: string): Traffic {
    return this.#traffic.get(hostname) ?? NO_TRAFFIC;
  }

  attempts(hostname: string): Times {
    return this.#attempts.get(hostname) ?? NO_ATTEMPT;
  }
}
