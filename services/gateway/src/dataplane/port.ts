import type { ErrorCode } from '@skerry/protocol';

/**
 * What the gateway needs of a data plane: it accepts connections, finds the host name in each, and passes the traffic to the
 * instance's IPv6 address. It knows names and addresses and nothing else; why a name has no address is asked through `explain`.
 * Every adapter passes `suite.ts`.
 */
export interface DataPlane extends AsyncDisposable {
  /** Opens all listeners; rejects, with none open, where one cannot be. */
  listen(): Promise<ListenPorts>;
  /** Makes these the only routes. Open connections keep theirs. */
  replaceTable(routes: Iterable<Route>): void;
  /** Applies some changes, in order. Open connections keep their routes. */
  applyChanges(changes: Iterable<RouteChange>): void;
  stats(): DataPlaneStats;
  /** Stops listening and ends every connection. */
  close(): Promise<void>;
}

export interface ListenPorts {
  readonly http: number;
  readonly https: number;
}

export interface Route {
  /** The whole host name, in lower case, without a trailing dot. */
  readonly hostname: string;
  readonly ipv6: string;
}

export interface RouteChange {
  readonly hostname: string;
  /** Null takes the route away. */
  readonly ipv6: string | null;
}

/** Why a request of a well-formed host name was not served. */
export type Failure =
  | 'not_routed'
  | 'refused'
  | 'unreachable'
  | 'connect_timeout'
  | 'response_timeout'
  | 'broken';

/** For the person who asked: the code decides the HTTP status, the message is one or a few plain sentences. */
export interface Explanation {
  readonly code: ErrorCode;
  readonly message: string;
}

export interface DataPlaneOptions {
  /** Addresses to listen on, each on both ports. */
  readonly hosts: readonly string[];
  /** 0 lets the system choose; it is the same for every address. */
  readonly httpPort: number;
  readonly httpsPort: number;
  /** Ports of the instances: 80 and 443 but in tests. */
  readonly upstreamHttpPort: number;
  readonly upstreamHttpsPort: number;
  readonly explain: (hostname: string, failure: Failure) => Explanation;
  readonly limits?: Partial<DataPlaneLimits>;
}

export type CreateDataPlane = (options: DataPlaneOptions) => DataPlane;

export interface DataPlaneLimits {
  /** Open connections of each listener; more are closed at once. */
  readonly maxConnections: number;
  /** Connections whose ClientHello is not complete; one more ends the oldest of them. */
  readonly maxUndecided: number;
  /** From the connection to a complete ClientHello or HTTP request head. */
  readonly helloTimeoutMs: number;
  readonly connectTimeoutMs: number;
  /** Without a byte in either direction. */
  readonly idleTimeoutMs: number;
  /** Between two requests of one HTTP connection. */
  readonly keepAliveTimeoutMs: number;
}

export const DEFAULT_LIMITS: DataPlaneLimits = {
  maxConnections: 20_000,
  maxUndecided: 4096,
  helloTimeoutMs: 10_000,
  connectTimeoutMs: 5_000,
  idleTimeoutMs: 300_000,
  keepAliveTimeoutMs: 60_000,
};

/** What became of connections on the TLS listener, since the start. */
export type TlsOutcome =
  | 'relayed'
  | 'unknown_name'
  | 'no_server_name'
  | 'not_tls'
  | 'malformed'
  | 'hello_timeout'
  | 'crowded_out'
  | 'gone'
  | 'connect_failed';

export interface DataPlaneStats {
  readonly routes: number;
  readonly tlsOpen: number;
  readonly tlsOutcomes: Readonly<Record<TlsOutcome, number>>;
  /** Bytes of TLS connections that have ended. */
  readonly tlsBytesToInstances: number;
  readonly tlsBytesToClients: number;
  readonly httpOpen: number;
  readonly httpRequests: number;
}
