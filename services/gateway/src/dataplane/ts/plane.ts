import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import {
  type DataPlane,
  type DataPlaneOptions,
  type DataPlaneStats,
  DEFAULT_LIMITS,
  type ListenPorts,
  type Route,
  type RouteChange,
} from '../port.ts';
import { createHttpListener, type HttpListener } from './http-listener.ts';
import { applyRouteChanges, type RouteTable, replaceRoutes } from './routes.ts';
import { createTlsListener, type TlsCounters, type TlsListener } from './tls-listener.ts';

/** Connections that wait to be accepted. */
const BACKLOG = 4096;

async function open(server: Server, host: string, port: number): Promise<number> {
  server.listen({ host, port, backlog: BACKLOG });
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Tries to find a port that is free on every address, where the system chooses. */
const MAX_PORT_TRIES = 10;

/** All servers on one port, each on its address; with none open where that fails. */
async function openTogether(
  servers: readonly Server[],
  hosts: readonly string[],
  port: number,
): Promise<number> {
  for (let tries = 1; ; tries++) {
    let actual = port;
    try {
      for (const [index, host] of hosts.entries()) actual = await open(servers[index]!, host, actual);
      return actual;
    } catch (error) {
      await Promise.all(servers.map((server) => shut({ server, connections: new Set() })));
      const taken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
      if (port !== 0 || !taken || tries === MAX_PORT_TRIES) throw error;
    }
  }
}

interface Listener {
  readonly server: Server;
  readonly connections: ReadonlySet<Socket>;
}

const countConnections = (listeners: readonly Listener[]) =>
  listeners.reduce((sum, { connections }) => sum + connections.size, 0);

async function shut({ server, connections }: Listener): Promise<void> {
  const closed = server.listening ? once(server, 'close') : undefined;
  server.close();
  for (const socket of connections) socket.destroy();
  await closed;
}

/** The data plane in plain TypeScript, on Node's own sockets. */
export class TsDataPlane implements DataPlane {
  readonly #options: DataPlaneOptions;
  readonly #routes: RouteTable = new Map();
  readonly #tlsCounters: TlsCounters = {
    outcomes: {
      relayed: 0,
      unknown_name: 0,
      no_server_name: 0,
      not_tls: 0,
      malformed: 0,
      hello_timeout: 0,
      crowded_out: 0,
      gone: 0,
      connect_failed: 0,
    },
    bytesToInstances: 0,
    bytesToClients: 0,
  };
  readonly #httpCounters = { requests: 0 };
  /** One of each for every address. */
  readonly #tls: readonly TlsListener[];
  readonly #http: readonly HttpListener[];

  constructor(options: DataPlaneOptions) {
    this.#options = options;
    const { explain } = options;
    const limits = { ...DEFAULT_LIMITS, ...options.limits };
    const routes = this.#routes;
    const tls = { routes, limits, upstreamPort: options.upstreamHttpsPort, counters: this.#tlsCounters };
    const http = {
      routes,
      limits,
      explain,
      upstreamPort: options.upstreamHttpPort,
      counters: this.#httpCounters,
    };
    this.#tls = options.hosts.map(() => createTlsListener(tls));
    this.#http = options.hosts.map(() => createHttpListener(http));
  }

  async listen(): Promise<ListenPorts> {
    const { hosts, httpPort, httpsPort } = this.#options;
    const servers = (listeners: readonly Listener[]) => listeners.map(({ server }) => server);
    try {
      const http = await openTogether(servers(this.#http), hosts, httpPort);
      const https = await openTogether(servers(this.#tls), hosts, httpsPort);
      return { http, https };
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  replaceTable(routes: Iterable<Route>): void {
    replaceRoutes(this.#routes, routes);
  }

  applyChanges(changes: Iterable<RouteChange>): void {
    applyRouteChanges(this.#routes, changes);
  }

  stats(): DataPlaneStats {
    return {
      routes: this.#routes.size,
      tlsOpen: countConnections(this.#tls),
      tlsOutcomes: { ...this.#tlsCounters.outcomes },
      tlsBytesToInstances: this.#tlsCounters.bytesToInstances,
      tlsBytesToClients: this.#tlsCounters.bytesToClients,
      httpOpen: countConnections(this.#http),
      httpRequests: this.#httpCounters.requests,
    };
  }

  async close(): Promise<void> {
    for (const listener of this.#http) listener.close();
    await Promise.all([...this.#http, ...this.#tls].map(shut));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
