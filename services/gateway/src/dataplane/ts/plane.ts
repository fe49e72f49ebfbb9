import { newTlsCounts, noQuicCounts } from '../figures.ts';
import { guarded } from '../guarded.ts';
import {
  type Attempts,
  type DataPlane,
  type DataPlaneOptions,
  type DataPlaneStats,
  DEFAULT_LIMITS,
  type ListenPorts,
  type Route,
  type RouteChange,
} from '../port.ts';
import { HttpSide } from './http/side.ts';
import { drainListeners, openTogether, shut } from './listening.ts';
import { RouteTable } from './routes.ts';
import { Stalls } from './stalls/stalls.ts';
import { createTlsListener, type TlsListener } from './tls/listener.ts';
import { TlsSide } from './tls/side.ts';

/** The data plane in plain TypeScript, on Node's sockets. */
export class TsDataPlane implements DataPlane {
  readonly #options: DataPlaneOptions;
  readonly #routes = new RouteTable();
  readonly #counters = newTlsCounts();
  /** One for every address. */
  readonly #tls: readonly TlsListener[];
  readonly #side: TlsSide;
  readonly #http: HttpSide;
  readonly #stalls: Stalls;

  constructor(given: DataPlaneOptions) {
    const options = guarded(given);
    this.#options = options;
    const limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.#side = new TlsSide(limits, options);
    this.#stalls = new Stalls({ ...options, limitBytes: limits.maxStalledBytes, parts: 1 });
    const tls = {
      routes: this.#routes,
      limits,
      upstreamPort: options.upstreamHttpsPort,
      counters: this.#counters,
      side: this.#side,
      stalls: this.#stalls,
      onTrouble: options.onTrouble,
    };
    this.#tls = options.hosts.map(() => createTlsListener(tls));
    this.#http = new HttpSide(options, this.#routes);
  }

  async listen(): Promise<ListenPorts> {
    const { hosts, httpsPort, sharePort } = this.#options;
    const use = sharePort ? 'shared' : 'alone';
    try {
      const http = await this.#http.listen(use);
      const servers = this.#tls.map(({ server }) => server);
      const https = await openTogether(servers, hosts, httpsPort, use);
      return { http, https, noQuic: 'the TypeScript data plane does not forward it' };
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  replaceTable(routes: Iterable<Route>): void {
    this.#routes.replace(routes);
  }

  applyChanges(changes: Iterable<RouteChange>): void {
    this.#routes.apply(changes);
  }

  stats(): DataPlaneStats {
    return {
      routes: this.#routes.size,
      tls: {
        figures: { ...this.#counters.figures, stalledBytes: this.#stalls.heldBytes },
        outcomes: { ...this.#counters.outcomes },
      },
      quic: noQuicCounts(),
      httpOpen: this.#http.open,
      httpYielded: this.#http.yielded,
      httpRequests: this.#http.requests,
      httpCounts: this.#http.counts,
      httpRefusals: this.#http.refusals,
      httpStalledBytes: this.#http.stalledBytes,
    };
  }

  async findAttempts(hostname: string): Promise<Attempts | undefined> {
    const route = this.#routes.get(hostname);
    if (route === undefined) return undefined;
    return {
      ...this.#routes.attempts(hostname),
      open: this.#side.perInstance.get(route),
      traffic: this.#routes.traffic(hostname),
    };
  }

  async drain(timeoutMs: number): Promise<void> {
    await Promise.all([drainListeners(this.#tls, timeoutMs), this.#http.drain(timeoutMs)]);
    await this.close();
  }

  async close(): Promise<void> {
    // An orderly end would be taken for the end of what was sent.
    for (const { connections } of this.#tls) for (const connection of connections) connection.cut();
    await Promise.all([this.#http.close(), ...this.#tls.map(shut)]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
