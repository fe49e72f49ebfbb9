import {
  Agent,
  type AgentOptions,
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import type { DataPlaneLimits, Explanation, RouteFailure } from '../../port.ts';
import { connectInstance, failureOf } from '../connect.ts';
import type { Counts } from '../counts.ts';
import { cutOff } from '../cut-off.ts';
import { linger } from '../linger.ts';
import { relay } from '../relay.ts';
import type { Routed, RouteTable } from '../routes.ts';
import type { Stalls } from '../stalls/stalls.ts';
import type { Uploads } from '../uploads.ts';
import { abandon } from './abandon.ts';
import { endToEndHeaders, hasBody, requestHeaders } from './headers.ts';
import { headerValues, type RequestTarget } from './host.ts';
import { sendPage } from './page.ts';

/** Idle connections to instances are kept shorter than web servers usually keep theirs (5 s), so that few are stale. */
const IDLE_UPSTREAM_MS = 4_000;
const MAX_IDLE_PER_INSTANCE = 8;
const REPEATABLE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);

/** The instance's side is judged first, so that its silence can still be explained to the client. */
export const CLIENT_IDLE_FACTOR = 2;

export interface Forwarding {
  readonly limits: DataPlaneLimits;
  readonly upstreamPort: number;
  readonly agents: InstanceAgents;
  readonly explain: (hostname: string, failure: RouteFailure) => Explanation;
  readonly routes: RouteTable;
  readonly perInstance: Counts<Routed>;
  readonly stalls: Stalls;
  readonly uploads: Uploads;
}

/** One request of a client, its response, and the instance that it goes to. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly target: RequestTarget;
  readonly route: Routed;
  /** The client waits for `100 Continue` before it sends the body. */
  readonly expectsContinue: boolean;
}

class InstanceAgent extends Agent {
  readonly #connectTimeoutMs: number;
  readonly #halfOpen: boolean;

  constructor(connectTimeoutMs: number, options: AgentOptions) {
    super(options);
    this.#connectTimeoutMs = connectTimeoutMs;
    this.#halfOpen = options.keepAlive !== true;
  }

  override createConnection(options: { host?: string | null; port?: number | string | null }): Socket {
    return connectInstance({
      ipv6: options.host!,
      port: Number(options.port),
      timeoutMs: this.#connectTimeoutMs,
      halfOpen: this.#halfOpen,
    });
  }
}

export interface InstanceAgents {
  /** Keeps connections for the next request. */
  readonly kept: Agent;
  /** A connection for each request. */
  readonly single: Agent;
}

export function createInstanceAgents(connectTimeoutMs: number): InstanceAgents {
  return {
    kept: new InstanceAgent(connectTimeoutMs, {
      keepAlive: true,
      maxFreeSockets: MAX_IDLE_PER_INSTANCE,
      timeout: IDLE_UPSTREAM_MS,
    }),
    single: new InstanceAgent(connectTimeoutMs, { keepAlive: false }),
  };
}

/**
 * The request to the instance. Only one that may be repeated uses a kept connection: if that turns out to have been closed
 * meanwhile, it is sent again (RFC 9110 §9.2.2 forbids that for others).
 */
function openRequest(
  exchange: Exchange,
  forwarding: Forwarding,
  repeatable: boolean,
  upgrade?: string,
): ClientRequest {
  const { request, target, route } = exchange;
  const method = request.method ?? 'GET';
  const { limits, upstreamPort, agents } = forwarding;
  return httpRequest({
    host: route.ipv6,
    port: upstreamPort,
    method,
    path: target.path,
    headers: requestHeaders({
      method,
      rawHeaders: request.rawHeaders,
      authority: target.authority,
      clientAddress: request.socket.remoteAddress ?? '',
      upgrade,
    }),
    timeout: limits.idleTimeoutMs,
    agent: repeatable ? agents.kept : agents.single,
  });
}

export const OVERLOADED: Explanation = {
  code: 'OVERLOADED',
  message: "The gateway's limit of parallel requests to this instance is reached.",
};

/**
 * Whether the instance may have one more request; otherwise the client is told so.
 * @param whole what closes when the exchange is over
 */
function enter(
  { request, response, route, expectsContinue }: Exchange,
  { perInstance }: Forwarding,
  whole: ServerResponse | Socket,
): boolean {
  if (perInstance.enter(route)) {
    whole.once('close', () => perInstance.leave(route));
    return true;
  }
  if (expectsContinue) response.shouldKeepAlive = false;
  sendPage(response, OVERLOADED);
  finishRequest(request);
  return false;
}

/** Passes one request to its instance and the response back, streaming both ways. Every failure ends in a page or a reset. */
export function forward(exchange: Exchange, forwarding: Forwarding): void {
  const { request, response } = exchange;
  if (!enter(exchange, forwarding, response)) return;
  const bodied = hasBody(request.rawHeaders);
  const repeatable = REPEATABLE_METHODS.has(request.method ?? '') && !bodied;
  const upstream = openRequest(exchange, forwarding, repeatable);
  // A kept connection that was closed meanwhile: once more, on a new one.
  const again = () => {
    const second = openRequest(exchange, forwarding, false);
    bindPlain(second, exchange, forwarding);
    second.end();
  };
  bindPlain(upstream, exchange, forwarding, repeatable ? again : undefined);
  if (bodied) {
    // Headers go ahead of the body: the instance may answer, or ask for the body, before there is any.
    upstream.flushHeaders();
    request.pipe(upstream);
    forwarding.uploads.enter(upstream, request.socket);
    response.once('close', () => forwarding.uploads.leave(upstream));
  } else {
    upstream.end();
  }
}

/** Asks the instance to switch protocols; after its 101 the two sockets are joined. */
export function forwardUpgrade(exchange: Exchange, forwarding: Forwarding, head: Uint8Array): void {
  const { request } = exchange;
  const client = request.socket;
  // The response is let go of before the socket closes, and tells of no end then: what is counted is the socket.
  if (!enter(exchange, forwarding, client)) return;
  const upgrade = headerValues(request.rawHeaders, 'upgrade').join(', ');
  const upstream = openRequest(exchange, forwarding, false, upgrade);
  bind(upstream, exchange, forwarding);
  upstream.once('upgrade', (answer, instance: Socket, instanceHead) => {
    if (client.destroyed) {
      instance.destroy();
      return;
    }
    instance.on('error', () => {});
    exchange.response.detachSocket(client);
    // Until the client's end: what is left there is the client's as well.
    forwarding.stalls.join(client, instance);
    client.write(switchingHead(answer), 'latin1');
    if (instanceHead.length > 0) client.write(instanceHead);
    if (head.length > 0) instance.write(head);
    forwarding.uploads.enter(instance, client);
    client.once('close', () => forwarding.uploads.leave(instance));
    relay(client, instance, {
      idleTimeoutMs: forwarding.limits.idleTimeoutMs,
      whenTaken: (then) => forwarding.stalls.whenTaken(client, then),
    });
  });
  upstream.end();
}

function switchingHead(answer: IncomingMessage): string {
  const lines = [`HTTP/1.1 101 ${answer.statusMessage}`];
  for (let i = 0; i < answer.rawHeaders.length; i += 2)
    lines.push(`${answer.rawHeaders[i]}: ${answer.rawHeaders[i + 1]}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
}

/** @returns what answers with a page, where nothing is answered yet */
function bind(
  upstream: ClientRequest,
  exchange: Exchange,
  forwarding: Forwarding,
  again?: () => void,
): (failure: RouteFailure) => void {
  const { request, response, target, route } = exchange;
  let continued = false;
  let answered = false;
  let timedOut = false;
  const settleExpectation = () => {
    // The client may or may not send the body that it announced: after this answer nobody could tell.
    if (exchange.expectsContinue && !continued) response.shouldKeepAlive = false;
  };
  response.once('close', () => abandon(upstream, forwarding.stalls));
  upstream.once('socket', (socket: Socket) => {
    forwarding.stalls.join(request.socket, socket);
    upstream.once('close', () => forwarding.stalls.part(request.socket, socket));
  });
  upstream.once('timeout', () => {
    timedOut = true;
    abandon(upstream, forwarding.stalls);
  });
  upstream.once('continue', () => {
    continued = true;
    if (exchange.expectsContinue) response.writeContinue();
  });
  upstream.once('response', (answer) => {
    answered = true;
    forwarding.routes.noteAttempt(route);
    forwarding.routes.countRequest(route);
    settleExpectation();
    passBack(answer, exchange);
  });
  const isOver = () => answered || response.destroyed || response.headersSent;
  const fail = (failure: RouteFailure) => {
    if (isOver()) return;
    request.unpipe(upstream);
    settleExpectation();
    forwarding.routes.noteAttempt(route, failure);
    sendPage(response, forwarding.explain(target.hostname, failure));
    finishRequest(request);
  };
  upstream.on('error', (error) => {
    // An instance that was silent for so long had the request: its client does not wait for that twice.
    if (again && !timedOut && upstream.reusedSocket && !isOver()) again();
    else fail(timedOut ? 'response_timeout' : failureOf(error));
  });
  return fail;
}

/** A request that asks for no switch: an instance that switches all the same has not answered it, and Node says nothing of it. */
function bindPlain(
  upstream: ClientRequest,
  exchange: Exchange,
  forwarding: Forwarding,
  again?: () => void,
): void {
  const fail = bind(upstream, exchange, forwarding, again);
  upstream.once('upgrade', (_answer, instance) => {
    instance.destroy();
    fail('broken');
  });
}

/** An answer can be complete before the request is; the rest of the request is dropped, within limits. */
function finishRequest(request: IncomingMessage): void {
  if (!request.complete) linger(request, () => request.socket.destroy());
}

function passBack(answer: IncomingMessage, exchange: Exchange): void {
  const { request, response } = exchange;
  // The client must not take a cut answer for a whole one.
  const cut = () => cutOff(request.socket);
  response.sendDate = false;
  try {
    response.writeHead(answer.statusCode!, answer.statusMessage ?? '', endToEndHeaders(answer.rawHeaders));
  } catch {
    cut();
    return;
  }
  // Headers wait for the first bytes of the body only as long as those are there already.
  setImmediate(() => response.writableEnded || response.destroyed || response.flushHeaders());
  answer.once('error', cut);
  answer.once('end', () => {
    if (answer.rawTrailers.length > 0) response.addTrailers(trailerPairs(answer.rawTrailers));
    response.end();
  });
  response.once('finish', () => finishRequest(request));
  answer.pipe(response, { end: false });
}

function trailerPairs(rawTrailers: readonly string[]): [string, string][] {
  return rawTrailers.flatMap((name, index) =>
    index % 2 === 0 ? [[name, rawTrailers[index + 1]!] satisfies [string, string]] : [],
  );
}
