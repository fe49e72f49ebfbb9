import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type Http2Stream,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Socket } from 'node:net';
import type { Explanation, RouteFailure } from '../../port.ts';
import { STALL_RULE } from '../../stall-rule.ts';
import { connectInstance, failureOf } from '../connect.ts';
import { cutOff } from '../cut-off.ts';
import type { Routed } from '../routes.ts';
import type { Receiver } from '../stalls/stalls.ts';
import type { Forwarding } from './forward.ts';
import { forwardedHeaders, isSaidByProxies, mayBeTrailer } from './headers.ts';
import type { RequestTarget } from './host.ts';
import { endSession } from './http2-end.ts';

/** Connections to instances that one client's connection may have at a time. */
const MAX_INSTANCES_PER_CLIENT = 16;
/** Of a request, of an answer and of each that goes before one. */
export const MAX_HEADER_LIST_BYTES = 16 * 1024;
/** Answers that go before the answer (100, 103). Nothing holds an instance back that sends them without end: the others are dropped. */
const MAX_INFORMS = 4;
const { NGHTTP2_CANCEL, NGHTTP2_INTERNAL_ERROR, NGHTTP2_NO_ERROR, NGHTTP2_REFUSED_STREAM } = constants;

export interface StreamExchange {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  readonly target: RequestTarget;
  readonly route: Routed;
  readonly clientAddress: string;
  /** Answers with a page, where nothing has been answered yet. */
  readonly refuse: (explanation: Explanation) => void;
}

interface InstanceSession {
  readonly session: ClientHttp2Session;
  readonly socket: Socket;
  /** What ended it, and all its streams. */
  failure: RouteFailure | undefined;
}

/** One client's connections to instances: no other client's streams share them. */
export class InstanceSessions {
  readonly #client: Receiver;
  readonly #forwarding: Forwarding;
  readonly #byAddress = new Map<string, InstanceSession>();
  /** Those, and those that take no more streams and are not over yet. */
  readonly #open = new Set<InstanceSession>();

  /** @param client the socket of its connection: what waits in those to instances counts as its own */
  constructor(client: Receiver, forwarding: Forwarding) {
    this.#client = client;
    this.#forwarding = forwarding;
  }

  /** Undefined where there would be too many. */
  get(ipv6: string): InstanceSession | undefined {
    const had = this.#byAddress.get(ipv6);
    if (had && !had.session.closed && !had.session.destroyed) return had;
    if (this.#open.size >= MAX_INSTANCES_PER_CLIENT) return undefined;
    const socket = this.#connect(ipv6);
    const session = connect('http://instance', {
      createConnection: () => socket,
      settings: { enablePush: false, maxHeaderListSize: MAX_HEADER_LIST_BYTES },
    });
    const opened: InstanceSession = { session, socket, failure: undefined };
    this.#open.add(opened);
    socket.once('close', () => this.#open.delete(opened));
    session.on('error', (error) => {
      opened.failure ??= failureOf(error);
    });
    session.once('close', () => {
      if (this.#byAddress.get(ipv6) === opened) this.#byAddress.delete(ipv6);
    });
    this.#byAddress.set(ipv6, opened);
    return opened;
  }

  #connect(ipv6: string): Socket {
    const { upstreamPort: port, limits, stalls } = this.#forwarding;
    const socket = connectInstance({ ipv6, port, timeoutMs: limits.connectTimeoutMs, halfOpen: false });
    stalls.join(this.#client, socket);
    socket.once('close', () => stalls.part(this.#client, socket));
    return socket;
  }

  close(): void {
    // Nobody waits for what is on its way: once the kernel has all of that, it would keep it for minutes behind an orderly end.
    for (const { session, socket } of this.#open)
      if (socket.bytesWritten > STALL_RULE.fewBytes) cutOff(socket);
      else endSession(session, socket);
  }
}

/** The headers of the request that the instance gets. */
function requestHeaders({ headers, target, clientAddress }: StreamExchange): OutgoingHttpHeaders {
  const kept = Object.entries(headers).filter(([name]) => !isSaidByProxies(name) && name !== 'host');
  return {
    ...Object.fromEntries(kept),
    ':authority': target.authority,
    ':path': target.path,
    ':scheme': 'http',
    ...Object.fromEntries(
      forwardedHeaders(clientAddress, target.authority).map(([name, value]) => [name.toLowerCase(), value]),
    ),
  };
}

/** Passes one stream to its instance and the answer back, with trailers. Every failure ends in a page or a reset. */
export function forwardStream(
  exchange: StreamExchange,
  forwarding: Forwarding,
  instances: InstanceSessions,
): void {
  const { stream, route } = exchange;
  const instance = instances.get(route.ipv6);
  if (!instance) {
    stream.close(NGHTTP2_REFUSED_STREAM);
    return;
  }
  const upstream = instance.session.request(requestHeaders(exchange), {
    endStream: stream.endAfterHeaders,
    waitForTrailers: !stream.endAfterHeaders,
  });
  let timedOut = false;
  upstream.setTimeout(forwarding.limits.idleTimeoutMs, () => {
    timedOut = true;
    upstream.close(NGHTTP2_CANCEL);
  });
  const failure = () => (timedOut ? 'response_timeout' : (instance.failure ?? 'broken'));
  passRequest(stream, upstream);
  passAnswer(exchange, upstream, forwarding);
  bindEnds(exchange, upstream, failure, forwarding);
}

/** One direction. Node ends a stream that was reset like one that is complete: the other side must not take it for that. */
function pump(source: Http2Stream, target: Http2Stream): void {
  source.pipe(target, { end: false });
  source.once('end', () => {
    if (source.rstCode === NGHTTP2_NO_ERROR) target.end();
  });
}

/** Node reads trailers that it refuses to send, and says so by throwing: that breaks the stream, and nothing else. */
function sendTrailers(stream: Http2Stream, trailers: OutgoingHttpHeaders): void {
  try {
    stream.sendTrailers(trailers);
  } catch {
    stream.close(NGHTTP2_INTERNAL_ERROR);
  }
}

function passRequest(stream: ServerHttp2Stream, upstream: ClientHttp2Stream): void {
  if (stream.endAfterHeaders) return;
  let trailers: OutgoingHttpHeaders = {};
  stream.once('trailers', (found) => {
    trailers = Object.fromEntries(Object.entries(found).filter(([name]) => mayBeTrailer(name)));
  });
  upstream.once('wantTrailers', () => sendTrailers(upstream, trailers));
  pump(stream, upstream);
}

function passAnswer(
  { stream, route }: StreamExchange,
  upstream: ClientHttp2Stream,
  { routes }: Forwarding,
): void {
  let trailers: OutgoingHttpHeaders = {};
  let informs = 0;
  const inform = (headers: OutgoingHttpHeaders) => {
    if (++informs > MAX_INFORMS) return;
    try {
      if (!stream.destroyed && !stream.headersSent) stream.additionalHeaders(headers);
    } catch {
      // A hint that Node will not pass on is no loss.
    }
  };
  upstream.on('continue', () => inform({ ':status': 100 }));
  upstream.on('headers', (headers) => inform(headers));
  upstream.once('response', (headers, flags) => {
    routes.noteAttempt(route);
    routes.countRequest(route);
    if (stream.destroyed) return;
    const endStream = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    try {
      stream.respond(headers, { endStream, waitForTrailers: !endStream });
      if (!endStream) pump(upstream, stream);
    } catch {
      stream.close(NGHTTP2_INTERNAL_ERROR);
    }
  });
  upstream.once('trailers', (found) => {
    trailers = found;
  });
  stream.once('wantTrailers', () => sendTrailers(stream, trailers));
}

/** What breaks on one side is told to the other, in the terms of HTTP/2. */
function bindEnds(
  { stream, target, route, refuse }: StreamExchange,
  upstream: ClientHttp2Stream,
  failureNow: () => RouteFailure,
  { routes, explain }: Forwarding,
): void {
  upstream.on('error', () => {});
  stream.once('close', () => {
    if (!upstream.closed) upstream.close(stream.rstCode || NGHTTP2_NO_ERROR);
  });
  upstream.once('close', () => {
    if (stream.closed) return;
    if (stream.headersSent) {
      if (!upstream.readableEnded || upstream.rstCode !== NGHTTP2_NO_ERROR)
        stream.close(upstream.rstCode || NGHTTP2_CANCEL);
      return;
    }
    if (upstream.rstCode === NGHTTP2_REFUSED_STREAM) {
      // It was not looked at: the client may send it again.
      stream.close(NGHTTP2_REFUSED_STREAM);
      return;
    }
    stream.unpipe(upstream);
    const failure = failureNow();
    routes.noteAttempt(route, failure);
    refuse(explain(target.hostname, failure));
  });
}
