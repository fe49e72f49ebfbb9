import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type NoShare, YieldingShares } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { DataPlaneLimits, Explanation, HttpClass, HttpRefusal, RouteFailure } from '../../port.ts';
import { type Counts, clientKey } from '../counts.ts';
import { cutOff } from '../cut-off.ts';
import { linger } from '../linger.ts';
import type { Routed, RouteTable } from '../routes.ts';
import type { Stalls } from '../stalls/stalls.ts';
import { RequestTurns } from '../turns.ts';
import { Uploads } from '../uploads.ts';
import {
  CLIENT_IDLE_FACTOR,
  createInstanceAgents,
  type Exchange,
  type Forwarding,
  forward,
  forwardUpgrade,
} from './forward.ts';
import { checkFraming, hasBody } from './headers.ts';
import { parseRequestTarget } from './host.ts';
import { createHttp2Listener, type Http2Listener } from './http2-listener.ts';
import { classOf, type HttpJournal, refusalOf } from './journal.ts';
import { endQuietly, endWithPage, findPage, NOT_HTTP, responseOn, sendPage } from './page.ts';

export interface HttpListenerOptions {
  readonly routes: RouteTable;
  readonly upstreamPort: number;
  readonly limits: DataPlaneLimits;
  readonly explain: (hostname: string, failure: RouteFailure) => Explanation;
  readonly counters: { requests: number; yielded: number };
  readonly journal: HttpJournal;
  readonly stalls: Stalls;
  /** Requests under way, of all listeners. */
  readonly perInstance: Counts<Routed>;
}

export interface HttpListener {
  readonly server: Server;
  readonly connections: ReadonlySet<Socket>;
  readonly close: () => void;
  /** Lets go of connections that have no request under way; ends others when they have none any more. */
  readonly release: () => void;
}

/** Request line and headers together. */
const MAX_HEAD_BYTES = 16 * 1024;
const NO_TUNNELS: Explanation = {
  code: 'METHOD_NOT_ALLOWED',
  message: 'This gateway makes no tunnels (CONNECT).',
};
/** How often Node looks for connections that are past their deadline, as a part of that deadline. */
const CHECKS_PER_DEADLINE = 10;

/** What the handlers of one listener share. */
interface Shared extends HttpListenerOptions {
  readonly forwarding: Forwarding;
  readonly turns: RequestTurns;
  readonly http2: Http2Listener;
}

/** A server that routes every request, also on a kept connection, by its own Host header. */
export function createHttpListener(options: HttpListenerOptions): HttpListener {
  const { limits, upstreamPort, explain, routes, counters, journal, perInstance, stalls } = options;
  const agents = createInstanceAgents(limits.connectTimeoutMs);
  const uploads = new Uploads();
  const forwarding = { limits, upstreamPort, agents, explain, routes, perInstance, stalls, uploads };
  const { maxConnections: total, maxPerClient: perClient } = limits;
  const places = new YieldingShares({ total, reserve: 0, perClient });
  const http2 = createHttp2Listener({ forwarding, counters, journal, places });
  const turns = new RequestTurns();
  const shared: Shared = { ...options, forwarding, turns, http2 };
  const server = createNodeServer(limits, turns);
  const connections = followConnections(server, places, shared);
  server.on('request', (request, response) => serve(shared, { request, response, expectsContinue: false }));
  server.on('checkContinue', (request, response) =>
    serve(shared, { request, response, expectsContinue: true }),
  );
  server.on('upgrade', (request, socket: Socket, head) => serveUpgrade(shared, request, socket, head));
  server.on('connect', (request, socket: Socket) => {
    socket.on('error', () => {});
    journal.refused(socket.remoteAddress ?? '', refusalOf(NO_TUNNELS.code));
    refuseOn(socket, turns.current(request.socket), NO_TUNNELS);
  });
  server.on('clientError', (error: ClientError, socket: Socket) => answerClientError(shared, error, socket));
  server.on('timeout', (socket: Socket) => {
    if (stalls.mayHold(socket)) cutOff(socket);
    else socket.destroy();
  });
  const release = () => {
    server.closeIdleConnections();
    http2.drain();
  };
  return { server, connections, close: () => agents.kept.destroy(), release };
}

function createNodeServer(limits: DataPlaneLimits, turns: RequestTurns): Server {
  const server = createServer({
    maxHeaderSize: MAX_HEAD_BYTES,
    headersTimeout: limits.helloTimeoutMs,
    // Bodies may take as long as they keep moving: the idle timeouts end those that do not.
    requestTimeout: 0,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.ceil(limits.helloTimeoutMs / CHECKS_PER_DEADLINE),
    // We answer a missing or second Host with a page of our own.
    requireHostHeader: false,
    noDelay: true,
    keepAlive: true,
    shouldUpgradeCallback: (request) => isUpgrade(request) && !turns.current(request.socket),
  });
  // A client that closes its side after the request still gets the response.
  Object.assign(server, { httpAllowHalfOpen: true });
  server.setTimeout(limits.idleTimeoutMs * CLIENT_IDLE_FACTOR);
  return server;
}

/** What is open; one too many is closed at once, or an old one of a client that has many. */
function followConnections(
  server: Server,
  places: YieldingShares,
  { counters, journal, stalls }: Pick<HttpListenerOptions, 'counters' | 'journal' | 'stalls'>,
): ReadonlySet<Socket> {
  const connections = new Set<Socket>();
  server.prependListener('connection', (socket) => {
    const client = { key: clientKey(socket.remoteAddress), isExempt: false };
    const place = places.take(client, () => {
      counters.yielded++;
      journal.refused(socket.remoteAddress ?? '', 'crowded_out');
      socket.destroy();
    });
    if (typeof place === 'string') {
      journal.refused(socket.remoteAddress ?? '', NO_PLACE[place]);
      socket.destroy();
      return;
    }
    connections.add(socket);
    followStalled(socket, { journal, stalls });
    socket.once('close', () => {
      connections.delete(socket);
      stalls.forget(socket);
      place.release();
    });
  });
  return connections;
}

/** Once all of TCP has much, a connection is not left to the kernel before its client has taken what it was sent. */
function followStalled(
  socket: Socket,
  { journal, stalls }: Pick<HttpListenerOptions, 'journal' | 'stalls'>,
): void {
  stalls.follow(socket, () => {
    journal.refused(socket.remoteAddress ?? '', 'stalled');
    cutOff(socket);
  });
  const close = socket.destroySoon.bind(socket);
  // Node's way to end a connection behind its last answer.
  socket.destroySoon = () => stalls.whenTaken(socket, close);
}

function serve(shared: Shared, arrived: Arrived): void {
  const { request, response } = arrived;
  shared.counters.requests++;
  const over = shared.journal.begin(traceOf(request, 'http1'));
  response.once('close', () =>
    over({ status: response.headersSent ? response.statusCode : null, refusedWith: findPage(response) }),
  );
  shared.turns.take(request.socket, response, () =>
    answerRequest(arrived, shared, (exchange) => forward(exchange, shared.forwarding)),
  );
}

function serveUpgrade(shared: Shared, request: IncomingMessage, socket: Socket, head: Buffer): void {
  shared.counters.requests++;
  socket.on('error', () => {});
  const arrived = { request, response: responseOn(socket, request), expectsContinue: false };
  const over = shared.journal.begin(traceOf(request, 'upgrade'));
  socket.once('close', () => {
    const { response } = arrived;
    const refusedWith = findPage(response);
    // After the switch the bytes are not of this response any more.
    const status = response.headersSent ? response.statusCode : socket.bytesWritten > 0 ? SWITCHED : null;
    over({ status, refusedWith });
  });
  answerRequest(arrived, shared, (exchange) => forwardUpgrade(exchange, shared.forwarding, head));
}

/** What is not HTTP/1.1: the preface of HTTP/2, or nothing that can be served. */
function answerClientError({ http2, turns, journal }: Shared, error: ClientError, socket: Socket): void {
  // The parser that met the preface still has its deadline for a request.
  if (http2.has(socket)) return;
  if (error.code === 'HPE_PAUSED_H2_UPGRADE' && error.rawPacket && !turns.has(socket)) {
    http2.take(socket, error.rawPacket.subarray(error.bytesParsed));
    return;
  }
  const explanation = explainClientError(error.code);
  if (isSaidByParser(error)) journal.refused(socket.remoteAddress ?? '', refusalOf(explanation.code));
  refuseOn(socket, turns.current(socket), explanation);
}

/** Why a connection has no place, by what the places say. */
const NO_PLACE = { share: 'client_limit', all: 'too_many' } as const satisfies Record<NoShare, HttpRefusal>;

/** Not that the connection broke, or that the client went away in the middle of a request. */
const isSaidByParser = ({ code }: ClientError) =>
  code === 'ERR_HTTP_REQUEST_TIMEOUT' ||
  (code?.startsWith('HPE_') === true && code !== 'HPE_INVALID_EOF_STATE');

/** @param current the response under way on that connection: no page can be the answer to what comes behind it */
function refuseOn(socket: Socket, current: ServerResponse | undefined, explanation: Explanation): void {
  if (!current && socket.writable) endWithPage(socket, explanation);
  // In the middle of a response a page would be taken for its content; a response that is written stands.
  else if (current?.writableEnded) endQuietly(socket);
  else socket.destroy();
}

const SWITCHED = 101;

const traceOf = ({ socket, method, headers, url }: IncomingMessage, kind: HttpClass) => ({
  class: classOf(url, kind),
  clientAddress: socket.remoteAddress ?? '',
  method: method ?? '',
  authority: headers.host ?? null,
});

/** What Node's HTTP/1.1 parser says of bytes that are not what it expects. */
interface ClientError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer;
  /** Of the packet, up to where the parser stopped. */
  readonly bytesParsed?: number;
}

/**
 * Switching to HTTP/2 this way is obsolete (RFC 9113 §3.1) and a body before the switch has no defined end here: both are
 * passed on as ordinary requests.
 */
function isUpgrade(request: IncomingMessage): boolean {
  const { upgrade } = request.headers;
  return request.method === 'GET' && upgrade?.toLowerCase() !== 'h2c' && !hasBody(request.rawHeaders);
}

type Arrived = Pick<Exchange, 'request' | 'response' | 'expectsContinue'>;

/** Finds the instance of a request and passes it on with `pass`, or answers with a page that says why not. */
function answerRequest(
  arrived: Arrived,
  options: Pick<HttpListenerOptions, 'routes' | 'explain'>,
  pass: (exchange: Exchange) => void,
): void {
  const { request, response, expectsContinue } = arrived;
  const refuse = (explanation: Explanation) => {
    if (expectsContinue) response.shouldKeepAlive = false;
    sendPage(response, explanation);
    if (!request.complete) linger(request, () => request.socket.destroy());
  };
  try {
    checkFraming(request.httpVersion, request.rawHeaders);
    const target = parseRequestTarget(request.url ?? '/', request.rawHeaders);
    const route = options.routes.get(target.hostname);
    if (route === undefined) refuse(options.explain(target.hostname, 'not_routed'));
    else pass({ ...arrived, target, route });
  } catch (error) {
    // What Node's HTTP client will not send is the client's doing too.
    refuse(error instanceof AppError ? error : NOT_HTTP);
  }
}

function explainClientError(code: string | undefined): Explanation {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return {
        code: 'HEADERS_TOO_LARGE',
        message: `The request headers are larger than ${MAX_HEAD_BYTES} bytes.`,
      };
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { code: 'REQUEST_TIMEOUT', message: 'The request did not arrive in time.' };
    default:
      return NOT_HTTP;
  }
}
