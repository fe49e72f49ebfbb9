import type { ErrorCode } from '@skerry/protocol';
import type { QuicCounts, QuicOutcome, TlsCounts, TlsOutcome } from './figures.ts';

/**
 * What the gateway needs of a data plane: it accepts connections, finds the host name in each, and passes the traffic to the
 * instance's IPv6 address. It knows names and addresses and nothing else; why a name has no address is asked through `explain`.
 * Every adapter passes `testing/suite.ts`.
 */
export interface DataPlane extends AsyncDisposable {
  /** Opens all listeners; rejects, with none open, where one cannot be. */
  listen(): Promise<ListenPorts>;
  /** Makes these the only routes. Open connections keep theirs. */
  replaceTable(routes: Iterable<Route>): void;
  /** Applies some changes, in order. Open connections keep their routes. */
  applyChanges(changes: Iterable<RouteChange>): void;
  /** Of after all changes of routes so far. */
  stats(): DataPlaneStats | Promise<DataPlaneStats>;
  /** What connections to a name's instance have met with; undefined where the name has no route. */
  findAttempts(hostname: string): Promise<Attempts | undefined>;
  /** Stops listening, lets what is open come to its end, and ends what is left after `timeoutMs`. */
  drain(timeoutMs: number): Promise<void>;
  /** Stops listening and ends every connection. */
  close(): Promise<void>;
}

/** The last connections that the data plane made to an instance, in Unix seconds; null for none yet. */
export interface Attempts {
  readonly connectedAt: number | null;
  readonly failedAt: number | null;
  readonly failure: RouteFailure | null;
  /** TLS connections that are open now. */
  readonly open: number;
  /** Of QUIC, where the data plane forwards it. */
  readonly quic?: QuicAttempts;
  readonly traffic: Traffic;
}

/** When an instance last said something over QUIC, and when a client was last refused since it left too many unanswered. */
export interface QuicAttempts {
  readonly answeredAt: number | null;
  readonly refusedAt: number | null;
}

/** What passed to and from an instance since its route was last set, as far as it is remembered. */
export interface Traffic {
  /** When what is counted began, Unix seconds; null where nothing came yet. */
  readonly since: number | null;
  /** TLS connections. */
  readonly connections: number;
  /** Of TLS connections that have ended. */
  readonly bytesToInstance: number;
  readonly bytesToClient: number;
  /** HTTP requests on port 80 that the instance was asked. */
  readonly requests: number;
}

/** What the access log tells of one connection, when it has ended. */
export type AccessRecord = {
  readonly startedUnixMs: number;
  readonly durationMs: number;
  readonly clientAddress: string;
  readonly clientPort: number;
  /** Null where no route was found. */
  readonly hostname: string | null;
  readonly bytesToInstance: number;
  readonly bytesToClient: number;
} & (
  | {
      readonly protocol: 'tls';
      /** Null where the gateway ended it before there was one. */
      readonly outcome: TlsOutcome | null;
    }
  /** A client that moves has a record for each place; bytes are those of datagrams. */
  | { readonly protocol: 'quic'; readonly outcome: QuicOutcome | null }
);

/** What the access log tells of one HTTP request. Neither path nor query: they can hold what is nobody else's business. */
export interface HttpAccessRecord {
  readonly startedUnixMs: number;
  readonly durationMs: number;
  readonly class: HttpClass;
  readonly clientAddress: string;
  readonly method: string;
  /** As the client wrote it; null where it wrote none. */
  readonly authority: string | null;
  /** Null where no answer was begun. */
  readonly status: number | null;
  readonly outcome: HttpOutcome;
}

/** So many clients of one network were refused for one reason. */
export type Refusal = {
  /** An IPv4 /24 or an IPv6 /48, in one spelling; null where it is not known. */
  readonly network: string | null;
  readonly count: number;
} & (
  | { readonly protocol: 'tls'; readonly reason: TlsOutcome }
  | { readonly protocol: 'quic'; readonly reason: QuicOutcome }
  | { readonly protocol: 'http'; readonly reason: HttpRefusal }
);

/** How a request came; challenges of certificate authorities (ACME HTTP-01) are told from the rest. */
export const HTTP_CLASSES = ['http1', 'http2', 'upgrade', 'acme_challenge'] as const;
export type HttpClass = (typeof HTTP_CLASSES)[number];

/** `failed`: its instance did not answer; `refused`: it was not to be passed on; `gone`: nobody waited for the answer. */
export const HTTP_OUTCOMES = ['forwarded', 'not_routed', 'failed', 'refused', 'gone'] as const;
export type HttpOutcome = (typeof HTTP_OUTCOMES)[number];

/**
 * Why plain HTTP was refused: the code of the page that said so, or, of connections that were ended without a word, `too_many` (no place
 * left), `client_limit` (the client has its share) and `crowded_out` (it had many, and its place went to another client), `http2_error` of those that broke the rules of HTTP/2, and `stalled` of
 * those that were cut, since they held too much that one side did not take.
 */
export const HTTP_REFUSALS = [
  'hostname_not_found',
  'instance_not_routed',
  'invalid_host',
  'invalid_parameters',
  'method_not_allowed',
  'headers_too_large',
  'request_timeout',
  'overloaded',
  'too_many',
  'client_limit',
  'crowded_out',
  'http2_error',
  'stalled',
] as const;
export type HttpRefusal = (typeof HTTP_REFUSALS)[number];

/** Requests that are over, since the start. */
export type HttpCounts = Readonly<Record<HttpClass, Readonly<Record<HttpOutcome, number>>>>;

/** Whether QUIC is forwarded: where it can be (`auto`), or else the data plane does not start (`yes`). */
export const QUIC_WISHES = ['no', 'auto', 'yes'] as const;
export type QuicWish = (typeof QUIC_WISHES)[number];

export interface ListenPorts {
  readonly http: number;
  readonly https: number;
  /** Why no QUIC is forwarded on the HTTPS port; null where it is. */
  readonly noQuic: string | null;
  /** What the system should be told for QUIC to lose less. */
  readonly quicHint?: string;
}

export interface Route {
  /** The whole host name, in lower case, without a trailing dot. */
  readonly hostname: string;
  readonly ipv6: string;
  /** Whether TLS connections to it begin with a header of the PROXY protocol, version 2. */
  readonly proxyHeader?: boolean;
}

export interface RouteChange {
  readonly hostname: string;
  /** Null takes the route away. */
  readonly ipv6: string | null;
  readonly proxyHeader?: boolean;
}

/** Why a request of a well-formed host name was not served. */
export type RouteFailure =
  | 'not_routed'
  | 'refused'
  | 'unreachable'
  | 'connect_timeout'
  | 'response_timeout'
  /** The gateway has no port or no descriptor left to connect with: nothing is known of the instance. */
  | 'gateway_full'
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
  readonly explain: (hostname: string, failure: RouteFailure) => Explanation;
  readonly limits?: Partial<DataPlaneLimits>;
  /** Whether other processes may listen on the same ports and share the connections. */
  readonly sharePort?: boolean;
  /** Of QUIC on the HTTPS port over UDP; only the native plane can forward it. `no` where it is left out. */
  readonly quic?: QuicWish;
  /** Told of clients that were refused: each, or many of a second at once. */
  readonly onRefused?: (refusal: Refusal) => void;
  /** Told of what should not happen, and of what is done about it. */
  readonly onTrouble?: (details: object, message: string) => void;
  /** Told of one in `every` connections of TLS and QUIC, and of one in `every` HTTP requests, at the end of each. */
  readonly access?: {
    readonly every: number;
    readonly tell: (record: AccessRecord) => void;
    readonly tellHttp?: (record: HttpAccessRecord) => void;
  };
}

export type CreateDataPlane = (options: DataPlaneOptions) => DataPlane;

export interface DataPlaneLimits {
  /**
   * Open connections of each listener; each request of HTTP/2 beside another counts as one. More are closed at once, or refused; but for a client that has
   * none, the oldest of the client that has most is closed, if that has several.
   */
  readonly maxConnections: number;
  /** Connections whose ClientHello is not complete; one more ends the oldest of the client, or network, that has many of them, or else the oldest. */
  readonly maxUndecided: number;
  /** The same of one IPv4 address or one IPv6 /64, on each kind of listener. */
  readonly maxPerClient: number;
  /** Open TLS connections to one instance, and as many requests under way; more are refused. */
  readonly maxPerInstance: number;
  /** From the connection to a complete ClientHello or HTTP request head. */
  readonly helloTimeoutMs: number;
  readonly connectTimeoutMs: number;
  /** From the first datagram of a QUIC connection to an instance until the instance answers. */
  readonly answerTimeoutMs: number;
  /** QUIC clients that are told at once, after some silence, why they get no connection, and how many a second then, one client a sixteenth of both: the others wait. */
  readonly maxRefusals: number;
  readonly refusalsPerSecond: number;
  /** QUIC connections that may begin to an instance before it says something, and then a second, until it does: more are refused. */
  readonly maxUnanswered: number;
  readonly unansweredPerSecond: number;
  /**
   * Memory of the kernel for what slow receivers of TLS have not taken, and half as much for plain HTTP; beyond it, connections of the network
   * (/24, /48) whose stalled ones hold most are cut, who was stalled for longest first; beyond twice as much, of those who read, too. 0 for half of what TCP may have here before the kernel saves (the first number of tcp_mem).
   */
  readonly maxStalledBytes: number;
  /** Without a byte in either direction. */
  readonly idleTimeoutMs: number;
  /** Between two requests of one HTTP connection. */
  readonly keepAliveTimeoutMs: number;
}

export const DEFAULT_LIMITS: DataPlaneLimits = {
  maxConnections: 20_000,
  maxUndecided: 4096,
  maxPerClient: 4096,
  maxPerInstance: 16_384,
  helloTimeoutMs: 10_000,
  connectTimeoutMs: 5_000,
  answerTimeoutMs: 1_000,
  maxRefusals: 16_000,
  refusalsPerSecond: 16_000,
  maxUnanswered: 256,
  unansweredPerSecond: 32,
  maxStalledBytes: 0,
  idleTimeoutMs: 300_000,
  keepAliveTimeoutMs: 60_000,
};

export interface DataPlaneStats {
  readonly routes: number;
  readonly tls: TlsCounts;
  readonly quic: QuicCounts;
  readonly httpOpen: number;
  /** Connections, and requests of HTTP/2, that ended where all places were taken, for a client that had none; since the start. */
  readonly httpYielded: number;
  readonly httpRequests: number;
  readonly httpCounts: HttpCounts;
  /** Requests and connections of plain HTTP that were refused, since the start. */
  readonly httpRefusals: Readonly<Record<HttpRefusal, number>>;
  /** Memory of the kernel that holds what slow receivers of plain HTTP have not taken. */
  readonly httpStalledBytes: number;
}
