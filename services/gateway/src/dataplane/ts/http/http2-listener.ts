import {
  constants,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Socket } from 'node:net';
import type { YieldingShares } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { Explanation } from '../../port.ts';
import { clientKey } from '../counts.ts';
import { cutOff } from '../cut-off.ts';
import { CLIENT_IDLE_FACTOR, type Forwarding, OVERLOADED } from './forward.ts';
import { parseRequestTarget } from './host.ts';
import { endSession } from './http2-end.ts';
import { forwardStream, InstanceSessions, MAX_HEADER_LIST_BYTES } from './http2-forward.ts';
import { classOf, type HttpJournal } from './journal.ts';
import { findPage, NOT_HTTP, notePage, pageOf } from './page.ts';

const { NGHTTP2_CANCEL } = constants;

/** What a client that knows of HTTP/2 beforehand sends first (RFC 9113 §3.4). */
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
const MAX_CONCURRENT_STREAMS = 128;
/** Streams that a client may take back: so many at once, and so many a second (CVE-2023-44487). Beyond it the connection ends. */
const RESETS = { burst: MAX_CONCURRENT_STREAMS, perSecond: 33 } as const;
/** With more streams open than this, the next ones are looked at after what came with them: many may be taken back already. */
const CALM_STREAMS = 16;
/** Listeners of Node's HTTP/1.1 server on a socket. `close` stays: it frees the parser. */
const HTTP1_EVENTS = ['data', 'end', 'drain', 'timeout', 'error', 'resume', 'pause'];

export interface Http2Listener {
  /** Takes over a connection whose preface an HTTP/1.1 parser met; `rest` came behind it. */
  readonly take: (socket: Socket, rest: Uint8Array) => void;
  readonly has: (socket: Socket) => boolean;
  /** Lets open streams come to their end and takes no more. */
  readonly drain: () => void;
}

export interface Http2ListenerOptions {
  readonly forwarding: Forwarding;
  readonly counters: { requests: number; yielded: number };
  readonly journal: HttpJournal;
  /** Those of connections. A stream beside another takes one, as the connection does that a request of HTTP/1.1 would come by. */
  readonly places: YieldingShares;
}

const NO_PLACE: Explanation = {
  code: 'OVERLOADED',
  message: "The gateway's limit of connections and HTTP/2 requests, of one client or of all, is reached.",
};

/** HTTP/2 without TLS: every stream is routed by its own `:authority`, as every request of HTTP/1.1 by its Host. */
export function createHttp2Listener(options: Http2ListenerOptions): Http2Listener {
  const { forwarding } = options;
  const taken = new WeakSet<Socket>();
  const sessions = new Set<ServerHttp2Session>();
  const server = createServer({
    streamResetBurst: RESETS.burst,
    streamResetRate: RESETS.perSecond,
    settings: {
      maxConcurrentStreams: MAX_CONCURRENT_STREAMS,
      maxHeaderListSize: MAX_HEADER_LIST_BYTES,
      enablePush: false,
    },
  });
  return {
    take(socket, rest) {
      taken.add(socket);
      release(socket);
      socket.on('error', () => {});
      // Unlike in HTTP/1.1, a client that ends its side wants no more answers, nor what the kernel has of them.
      socket.allowHalfOpen = false;
      socket.once('end', () => {
        if (forwarding.stalls.mayHold(socket)) cutOff(socket);
      });
      socket.unshift(Buffer.concat([PREFACE, rest]));
      // Told of before `emit` returns.
      server.once('session', (session) => {
        sessions.add(session);
        session.once('close', () => sessions.delete(session));
        serveSession(session, socket, options);
      });
      server.emit('connection', socket);
    },
    has: (socket) => taken.has(socket),
    drain() {
      for (const session of sessions) if (!session.closed) session.close();
    },
  };
}

/** Ends the HTTP/1.1 parser's hold of a socket: it lets go of the bytes when somebody else listens to them. */
function release(socket: Socket): void {
  socket.on('data', () => {});
  for (const event of HTTP1_EVENTS) socket.removeAllListeners(event);
  socket.setTimeout(0);
  socket.pause();
}

function serveSession(
  session: ServerHttp2Session,
  socket: Socket,
  { forwarding, counters, journal, places }: Http2ListenerOptions,
): void {
  const { limits, stalls } = forwarding;
  const instances = new InstanceSessions(socket, forwarding);
  // The socket does not know it any more once it ended, and streams may come to us after that.
  const clientAddress = socket.remoteAddress ?? '';
  const client = clientKey(clientAddress);
  let open = 0;
  session.setTimeout(limits.helloTimeoutMs);
  session.on('timeout', () => {
    if (stalls.mayHold(socket)) cutOff(socket);
    else endSession(session, socket);
  });
  // Its close follows.
  session.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code?.startsWith('ERR_HTTP2_')) journal.refused(clientAddress, 'http2_error');
  });
  session.once('close', () => instances.close());
  session.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    counters.requests++;
    const over = journal.begin({
      class: classOf(headers[':path'], 'http2'),
      clientAddress,
      method: headers[':method'] ?? '',
      authority: headers[':authority'] ?? null,
    });
    if (++open === 1) session.setTimeout(limits.idleTimeoutMs * CLIENT_IDLE_FACTOR);
    const asking = { key: client, isExempt: false };
    // The first has that of its connection.
    const yieldPlace = () => {
      counters.yielded++;
      journal.refused(clientAddress, 'crowded_out');
      stream.close(NGHTTP2_CANCEL);
    };
    const place = open > 1 ? places.take(asking, yieldPlace) : undefined;
    stream.on('error', () => {});
    stream.once('close', () => {
      if (typeof place === 'object') place.release();
      const status = stream.headersSent ? Number(stream.sentHeaders[':status']) : null;
      over({ status, refusedWith: findPage(stream) });
      if (--open === 0 && !session.destroyed) session.setTimeout(limits.keepAliveTimeoutMs);
    });
    const serve = () => {
      // Nobody waits for it, or nobody can be named who asked. One that was taken back may be closed, and neither of the others yet.
      if (stream.destroyed || stream.aborted || stream.closed || clientAddress === '')
        stream.close(NGHTTP2_CANCEL);
      else if (typeof place === 'string') respondWithPage(stream, NO_PLACE, headers.accept);
      else serveStream(stream, headers, clientAddress, forwarding, instances);
    };
    if (open > CALM_STREAMS) setImmediate(serve);
    else serve();
  });
}

/** Finds the instance of a stream and passes it on, or answers with a page that says why not. */
function serveStream(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  clientAddress: string,
  forwarding: Forwarding,
  instances: InstanceSessions,
): void {
  const refuse = (explanation: Explanation) => respondWithPage(stream, explanation, headers.accept);
  if (headers[':method'] === 'CONNECT') {
    refuse({ code: 'METHOD_NOT_ALLOWED', message: 'This gateway does not support tunnels (CONNECT).' });
    return;
  }
  try {
    const named = [headers[':authority'], headers.host].filter((name) => name !== undefined);
    const target = parseRequestTarget(
      headers[':path'] ?? '/',
      [...new Set(named)].flatMap((name) => ['host', name]),
    );
    const route = forwarding.routes.get(target.hostname);
    if (route === undefined) {
      refuse(forwarding.explain(target.hostname, 'not_routed'));
    } else if (forwarding.perInstance.enter(route)) {
      stream.once('close', () => forwarding.perInstance.leave(route));
      forwardStream({ stream, headers, target, route, clientAddress, refuse }, forwarding, instances);
    } else {
      refuse(OVERLOADED);
    }
  } catch (error) {
    // What Node's HTTP client will not send is the client's doing too.
    refuse(error instanceof AppError ? error : NOT_HTTP);
  }
}

function respondWithPage(stream: ServerHttp2Stream, explanation: Explanation, accept?: string): void {
  // Node answers no stream that is closed, and says so by throwing.
  if (stream.destroyed || stream.closed || stream.headersSent) return;
  notePage(stream, explanation);
  const { status, headers, body } = pageOf(explanation, accept);
  stream.respond({ ':status': status, ...headers });
  // What the client still sends is not wanted: its answer is complete (RFC 9113 §8.1).
  stream.resume().end(body, () => stream.closed || stream.close());
}
