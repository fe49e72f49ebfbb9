import type { TlsOutcome } from '../figures.ts';
import type { DataPlaneLimits } from '../port.ts';
import { LOG_FORMAT } from './log-line.ts';

/** Entries of a stick table, which are made when they are needed. */
const CLIENTS_MAX = 200_000;
const NAMES_MAX = 20_000;
/** The most that an unprivileged user may ask of a pipe (pipe(7)). */
const PIPE_BYTES = 1024 * 1024;
/** Part of the time for a hello after which its end is taken for a timeout: two clocks of HAProxy differ by a tick. */
const TIMEOUT_SHARE = 0.9;
/** HAProxy has room for 15,360 bytes of a hello (tune.bufsize less tune.maxrewrite). */
const FULL_BUFFER_BYTES = 15_000;

export const TABLES = { clients: 'clients', names: 'names', outcomes: 'outcomes' } as const;
/** Where connections go: with the header of the PROXY protocol, each name through a server of its own, or without. */
export const BACKENDS = { plain: 'plain', headers: 'headers' } as const;
/** The key of the outcomes under which connections to instances are counted. */
export const RELAY_KEY = 'relay';

/** A server of the backend for names that ask for the PROXY header. */
export interface HeaderServer {
  readonly server: string;
  readonly ipv6: string;
}

export interface HaproxyFacts {
  /** Paths of the admin socket and of the file with the routes at the start. */
  readonly adminSocket: string;
  readonly routesFile: string;
  /** Of listening sockets that it inherits, one for each address. */
  readonly listenFds: readonly number[];
  readonly instancePort: number;
  readonly limits: DataPlaneLimits;
  readonly headerServers: readonly HeaderServer[];
  /** Whether every connection is logged, for the access log; else only those that were refused or failed. */
  readonly logsAll: boolean;
}

export const serverLine = ({ server, ipv6 }: HeaderServer, port: number) =>
  `${server} [${ipv6}]:${port} send-proxy-v2 weight 0`;

/** Counts a connection under an outcome and ends it, at a phase of HAProxy's. Its line in the log says who was refused. */
function refuse(phase: 'connection' | 'content', outcome: TlsOutcome, condition: string): string[] {
  const when = `if ${condition}`;
  const told = `tcp-request content set-var(txn.outcome) str(${outcome}) ${when}`;
  return [
    `tcp-request ${phase} track-sc2 str(${outcome}) table ${TABLES.outcomes} ${when}`,
    ...(phase === 'content' ? [told] : []),
    `tcp-request ${phase} reject ${when}`,
  ];
}

/** An IPv4 address may come as a mapped one, of which 64 bits say nothing. */
const CLIENT_RULES = [
  'acl is_mapped src ::ffff:0:0/96',
  `tcp-request connection track-sc0 src,ipmask(32,128) table ${TABLES.clients} if is_mapped`,
  `tcp-request connection track-sc0 src,ipmask(32,64) table ${TABLES.clients} unless is_mapped`,
];

function frontend(fd: number, index: number, facts: HaproxyFacts): string[] {
  const { limits, routesFile } = facts;
  const isRouted = '{ var(txn.route) -m found }';
  const waited = `{ date(0,ms),sub(txn.begun) -m int ge ${Math.ceil(limits.helloTimeoutMs * TIMEOUT_SHARE)} }`;
  const refuseHello = (outcome: TlsOutcome, condition: string) => refuse('content', outcome, condition);
  return [
    `frontend listener${index}`,
    `bind fd@${fd}`,
    ...CLIENT_RULES,
    ...refuse('connection', 'too_many', `{ fe_conn gt ${limits.maxConnections} }`),
    ...refuse('connection', 'client_limit', `{ sc0_conn_cur gt ${limits.maxPerClient} }`),
    `tcp-request inspect-delay ${limits.helloTimeoutMs}ms`,
    'tcp-request content set-var(txn.begun) date(0,ms) unless { var(txn.begun) -m found }',
    `tcp-request content set-var(txn.sni) 'req.ssl_sni,lower,regsub("\\.$","")'`,
    `tcp-request content set-var(txn.route) var(txn.sni),map_str(${routesFile})`,
    `tcp-request content set-var(txn.name) var(txn.sni) if ${isRouted}`,
    `tcp-request content track-sc1 var(txn.name) table ${TABLES.names} if ${isRouted}`,
    ...refuseHello('instance_limit', `${isRouted} { sc1_conn_cur gt ${limits.maxPerInstance} }`),
    `tcp-request content track-sc2 str(${RELAY_KEY}) table ${TABLES.outcomes} if ${isRouted}`,
    `tcp-request content sc-set-gpt(1,1) date if ${isRouted} { sc_get_gpt(1,1) eq 0 }`,
    `tcp-request content set-dst var(txn.route) if ${isRouted} !{ var(txn.route) -m beg s }`,
    `tcp-request content accept if ${isRouted}`,
    ...refuseHello('unknown_name', '{ var(txn.sni) -m found } { var(txn.sni) -m len gt 0 }'),
    ...refuseHello('no_server_name', '{ req.ssl_hello_type 1 }'),
    ...refuseHello('not_tls', '{ req.len gt 0 } !{ req.payload(0,1) -m bin 16 }'),
    ...refuseHello('malformed', '{ req.len ge 6 } !{ req.payload(5,1) -m bin 01 }'),
    ...refuseHello('malformed', `WAIT_END { req.len ge ${FULL_BUFFER_BYTES} }`),
    ...refuseHello('hello_timeout', `WAIT_END ${waited}`),
    ...refuseHello('gone', 'WAIT_END'),
    `use_backend ${BACKENDS.headers} if { var(txn.route) -m beg s }`,
    `default_backend ${BACKENDS.plain}`,
  ];
}

/** As the first byte of the answer may be long in coming, this is done when the connection to the instance opens. */
const CONNECTED_RULES = [
  'tcp-response content sc-inc-gpc(0,1)',
  'tcp-response content sc-inc-gpc0(2)',
  'tcp-response content sc-set-gpt(0,1) date',
];

const table = (name: string, what: string) => [`backend ${name}`, `stick-table ${what}`];

/** HAProxy's configuration, of a plane that reads server names and passes TLS on. Pure. */
export function haproxyConfig(facts: HaproxyFacts): string {
  const { adminSocket, listenFds, instancePort, limits, headerServers, logsAll } = facts;
  const sections = [
    [
      'global',
      `stats socket unix@${adminSocket} mode 600 level admin`,
      'log stdout format raw local0',
      `tune.pipesize ${PIPE_BYTES}`,
    ],
    [
      'defaults',
      'mode tcp',
      'log global',
      `log-format "${LOG_FORMAT}"`,
      ...(logsAll ? [] : ['option dontlog-normal']),
      'option splice-auto',
      'retries 0',
      `timeout connect ${limits.connectTimeoutMs}ms`,
      `timeout client ${limits.idleTimeoutMs}ms`,
      `timeout server ${limits.idleTimeoutMs}ms`,
    ],
    table(TABLES.clients, `type ipv6 size ${CLIENTS_MAX} expire 10s store conn_cur`),
    table(
      TABLES.names,
      `type string len 254 size ${NAMES_MAX} expire 7d store conn_cur,gpc(1),gpt(2),bytes_in_cnt,bytes_out_cnt`,
    ),
    table(TABLES.outcomes, 'type string len 32 size 100 store conn_cnt,gpc0'),
    ...listenFds.map((fd, index) => frontend(fd, index, facts)),
    [`backend ${BACKENDS.plain}`, ...CONNECTED_RULES, `server instance [::]:${instancePort}`],
    [
      `backend ${BACKENDS.headers}`,
      ...CONNECTED_RULES,
      'use-server %[var(txn.route)] if { always_true }',
      // No weight: nothing goes to a server that is not named.
      ...headerServers.map((one) => `server ${serverLine(one, instancePort)}`),
    ],
  ];
  return sections.map(([head, ...lines]) => `${[head, ...lines].join('\n  ')}\n`).join('\n');
}
