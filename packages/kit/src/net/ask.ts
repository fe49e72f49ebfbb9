import http from 'node:http';
import https from 'node:https';
import { boundIdle } from './idle.ts';
import { partsMaxOf } from './parts.ts';
import { createLookup, findAddresses, type MayReach } from './reach.ts';
import { refuseUpgrade } from './refuse-upgrade.ts';

export interface AskerOptions {
  /** createReach(...) */
  readonly mayReach: MayReach;
  /** Whether connections are kept for the next request to the same place. */
  readonly keepAlive?: boolean;
  /** `address:port` of name servers; the machine's own where left out. */
  readonly dnsServers?: readonly string[];
}

export interface AskOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** From the first step to the last byte of the answer. */
  readonly timeoutMs: number;
  /** Until it is connected; then it failed as `unconnected`. */
  readonly connectMs?: number;
  /**
   * Until whoever is asked says that it takes the body (`Expect: 100-continue`, RFC 9110, 10.1.1); then it failed as `untaken`, and nothing
   * of the body was sent. What hangs takes connections all the same, by its kernel. Where left out, the body is sent at once.
   */
  readonly takeMs?: number;
  readonly bodyBytesMax: number;
  readonly signal: AbortSignal;
}

export interface Answered {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
}

/** `refused`: no address that may be asked; `unconnected`: nothing was sent; `untaken`: nothing of the body was. */
export type AskFailure = 'refused' | 'unconnected' | 'untaken' | 'timeout' | 'too_large' | 'broken';

export class AskError extends Error {
  readonly failure: AskFailure;
  /** ECONNREFUSED and the like; undefined where it was not the system that refused. */
  readonly code: string | undefined;

  constructor(failure: AskFailure, message: string, code?: string) {
    super(message);
    this.failure = failure;
    this.code = code;
  }
}

const HEADER_BYTES_MAX = 16 * 1024;
const CONNECT_TIMEOUT_MS = 10_000;
const IDLE_SOCKETS_PER_PLACE = 8;
/** Of all places, by each protocol. */
const IDLE_SOCKETS_MAX = 4_096;

/** Asks addresses that strangers chose. */
export interface Asker {
  /** Rejects with an AskError, or with the signal's reason. */
  ask(url: string, options: AskOptions): Promise<Answered>;
  close(): void;
}

/**
 * Requests to URLs of strangers: a name is resolved once for a connection, which goes to the address that was judged, so
 * that a name server cannot change its mind in between (DNS rebinding); no redirect is followed; time, header and body are
 * limited.
 */
export function createAsker({ mayReach, keepAlive = false, dnsServers }: AskerOptions): Asker {
  const settings = {
    keepAlive,
    maxFreeSockets: IDLE_SOCKETS_PER_PLACE,
    lookup: createLookup(0, mayReach, dnsServers),
  };
  const agents = {
    'http:': boundIdle(new http.Agent(settings), IDLE_SOCKETS_MAX),
    'https:': boundIdle(new https.Agent(settings), IDLE_SOCKETS_MAX),
  };
  return {
    async ask(address, options) {
      const url = new URL(address);
      // An address in the place of a name is connected to without being looked up.
      const isName = !/^(\[.*\]|[0-9.]+)$/.test(url.hostname);
      if (!isName && (await findAddresses(url.hostname, 0, mayReach)).length === 0)
        throw new AskError('refused', 'the address is not allowed');
      return send(url, options, url.protocol === 'https:' ? agents['https:'] : agents['http:']);
    },
    close() {
      for (const agent of Object.values(agents)) agent.destroy();
    },
  };
}

/** @param failure what it is unless the error says more */
function failureOf(error: NodeJS.ErrnoException, failure: AskFailure): AskError {
  if (error instanceof AskError) return error;
  const code = error.code;
  if (code === 'ENOTFOUND') return new AskError('refused', 'the name has no allowed address', code);
  return new AskError(failure, `does not answer (${code ?? error.message})`, code);
}

/** Reads all of an answer. Rejects with an AskError where it is too much, or cut off. */
function readAnswer(response: http.IncomingMessage, bodyBytesMax: number): Promise<Answered> {
  const { promise, resolve, reject } = Promise.withResolvers<Answered>();
  const chunks: Buffer[] = [];
  let size = 0;
  response.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > bodyBytesMax)
      reject(new AskError('too_large', `the answer is larger than ${bodyBytesMax} bytes`));
    else if (chunks.push(chunk) > partsMaxOf(bodyBytesMax))
      reject(new AskError('too_large', 'the answer comes in parts of a few bytes'));
  });
  response.on('error', (error) => reject(failureOf(error, 'broken')));
  response.once('end', () =>
    resolve({
      status: response.statusCode ?? 0,
      headers: response.headers,
      body: Buffer.concat(chunks),
    }),
  );
  response.once('close', () => reject(new AskError('broken', 'the answer was cut off')));
  return promise;
}

/** Its header; what is asked so that it has to be taken is sent at once, the body not yet. */
function begin(url: URL, { method = 'GET', headers, body, takeMs }: AskOptions, agent: http.Agent) {
  return (url.protocol === 'https:' ? https : http).request(url, {
    method,
    agent,
    headers: {
      ...headers,
      ...(takeMs === undefined ? {} : { expect: '100-continue' }),
      ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
    },
    maxHeaderSize: HEADER_BYTES_MAX,
  });
}

function send(url: URL, options: AskOptions, agent: http.Agent): Promise<Answered> {
  const { body, timeoutMs, connectMs = CONNECT_TIMEOUT_MS, takeMs, bodyBytesMax, signal } = options;
  const { promise, resolve, reject } = Promise.withResolvers<Answered>();
  if (signal.aborted) return Promise.reject(signal.reason);
  const request = begin(url, options, agent);
  /** What it failed as if the connection ended now. */
  let stage: AskFailure = 'unconnected';
  let isSent = false;
  const fail = (error: Error) => {
    reject(error);
    request.destroy();
  };
  const timers = [
    setTimeout(() => fail(new AskError('timeout', `no answer within ${timeoutMs} ms`)), timeoutMs),
    setTimeout(
      () => stage === 'unconnected' && fail(new AskError(stage, 'no connection was made')),
      connectMs,
    ),
    setTimeout(
      () => stage !== 'broken' && fail(new AskError(stage, `took nothing within ${takeMs} ms`)),
      takeMs ?? timeoutMs,
    ),
  ];
  const onAbort = () => fail(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  const onConnected = () => (stage = takeMs === undefined ? 'broken' : 'untaken');
  request.once('socket', (socket) => {
    if (request.reusedSocket) onConnected();
    else socket.once('connect', onConnected);
  });
  request.on('error', (error) => reject(failureOf(error, stage)));
  refuseUpgrade(request);
  request.once('response', (response) => {
    stage = 'broken';
    readAnswer(response, bodyBytesMax).then((answered) => {
      resolve(answered);
      // Whoever answers without the body is still due it on this connection.
      if (!isSent) request.destroy();
    }, fail);
  });
  const sendBody = () => {
    isSent = true;
    request.end(body);
  };
  if (takeMs === undefined) sendBody();
  else
    request.once('continue', () => {
      stage = 'broken';
      sendBody();
    });
  return promise.finally(() => {
    for (const timer of timers) clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  });
}
