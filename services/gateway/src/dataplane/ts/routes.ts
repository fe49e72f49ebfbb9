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

/**
 * Where a name leads, since it was last set so. A connection or request keeps the one that it began with, so what is still open when a
 * name is given to another instance neither takes that one's places nor counts as its.
 */
export interface Routed {
  readonly hostname: string;
  readonly ipv6: string;
  readonly proxyHeader: boolean;
}

/** Host name to address, as it is looked up once for each connection or request, and how attempts to connect went. */
export class RouteTable {
  readonly #routes = new Map<string, Routed>();
  readonly #attempts = new Map<string, Times>();
  readonly #traffic = new Map<string, Traffic>();

  get size(): number {
    return this.#routes.size;
  }

  get(hostname: string): Routed | undefined {
    return this.#routes.get(hostname);
  }

  /** A route that stays the same stays the same record. */
  replace(routes: Iterable<Route>): void {
    const before = new Map(this.#routes);
    this.#routes.clear();
    for (const route of routes) {
      const had = before.get(route.hostname);
      const isSame = had?.ipv6 === route.ipv6 && had.proxyHeader === (route.proxyHeader ?? false);
      if (isSame) this.#routes.set(route.hostname, had);
      else this.#put(route);
      before.delete(route.hostname);
    }
    for (const hostname of before.keys()) this.#forget(hostname);
  }

  apply(changes: Iterable<RouteChange>): void {
    for (const { hostname, ipv6, proxyHeader } of changes) {
      this.#routes.delete(hostname);
      if (ipv6 === null) this.#forget(hostname);
      else this.#put({ hostname, ipv6, proxyHeader: proxyHeader ?? false });
    }
  }

  #put({ hostname, ipv6, proxyHeader = false }: Route): void {
    this.#routes.set(hostname, { hostname, ipv6, proxyHeader });
    this.#forget(hostname);
  }

  #forget(hostname: string): void {
    this.#attempts.delete(hostname);
    this.#traffic.delete(hostname);
  }

  routes(): Iterable<Routed> {
    return this.#routes.values();
  }

  #isCurrent(route: Routed): boolean {
    return this.#routes.get(route.hostname) === route;
  }

  /** @param failure undefined where it came about */
  noteAttempt(route: Routed, failure?: RouteFailure): void {
    if (failure === 'gateway_full' || !this.#isCurrent(route)) return;
    const { hostname } = route;
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

  #count(route: Routed, add: (before: Traffic) => Partial<Traffic>): void {
    if (!this.#isCurrent(route)) return;
    const { hostname } = route;
    const before = this.#traffic.get(hostname) ?? { ...NO_TRAFFIC, since: Math.floor(Date.now() / 1000) };
    this.#traffic.delete(hostname);
    this.#traffic.set(hostname, { ...before, ...add(before) });
    if (this.#traffic.size > MAX_TRAFFIC) this.#traffic.delete(this.#traffic.keys().next().value!);
  }

  countConnection(route: Routed): void {
    this.#count(route, ({ connections }) => ({ connections: connections + 1 }));
  }

  countRequest(route: Routed): void {
    this.#count(route, ({ requests }) => ({ requests: requests + 1 }));
  }

  /** Of a connection that has ended; nothing where its route is gone or forgotten. */
  countBytes(route: Routed, toInstance: number, toClient: number): void {
    if (!this.#traffic.has(route.hostname)) return;
    this.#count(route, ({ bytesToInstance, bytesToClient }) => ({
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
