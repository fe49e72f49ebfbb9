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
  readonly bodyBytesMax: number;
  readonly signal: AbortSignal;
}

export interface Answered {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
}

/** `refused`: no address that may be asked; `unconnected`: nothing was sent. */
export type AskFailure = 'refused' | 'unconnected' | 'timeout' | 'too_large' | 'broken';

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

function failureOf(error: NodeJS.ErrnoException, wasConnected: boolean): AskError {
  if (error instanceof AskError) return error;
  const code = error.code;
  if (code === 'ENOTFOUND') return new AskError('refused', 'the name has no allowed address', code);
  return new AskError(
    wasConnected ? 'broken' : 'unconnected',
    `does not answer (${code ?? error.message})`,
    code,
  );
}

function send(url: URL, options: AskOptions, agent: http.Agent): Promise<Answered> {
  const { method = 'GET', headers, body, timeoutMs, bodyBytesMax, signal } = options;
  const { connectMs = CONNECT_TIMEOUT_MS } = options;
  const { promise, resolve, reject } = Promise.withResolvers<Answered>();
  if (signal.aborted) return Promise.reject(signal.reason);
  const request = (url.protocol === 'https:' ? https : http).request(url, {
    method,
    agent,
    headers: {
      ...headers,
      ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
    },
    maxHeaderSize: HEADER_BYTES_MAX,
  });
  let wasConnected = false;
  const fail = (error: Error) => {
    reject(error);
    request.destroy();
  };
  const timers = [
    setTimeout(() => fail(new AskError('timeout', `no answer within ${timeoutMs} ms`)), timeoutMs),
    setTimeout(() => wasConnected || fail(new AskError('unconnected', 'no connection was made')), connectMs),
  ];
  const onAbort = () => fail(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  request.once('socket', (socket) => {
    if (request.reusedSocket) wasConnected = true;
    else socket.once('connect', () => (wasConnected = true));
  });
  request.on('error', (error) => reject(failureOf(error, wasConnected)));
  refuseUpgrade(request);
  request.once('response', (response) => {
    const chunks: Buffer[] = [];
    let size = 0;
    response.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > bodyBytesMax)
        fail(new AskError('too_large', `the answer is larger than ${bodyBytesMax} bytes`));
      else if (chunks.push(chunk) > partsMaxOf(bodyBytesMax))
        fail(new AskError('too_large', 'the answer comes in parts of a few bytes'));
    });
    response.on('error', (error) => reject(failureOf(error, true)));
    response.once('end', () =>
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers,
        body: Buffer.concat(chunks),
      }),
    );
    response.once('close', () => reject(new AskError('broken', 'the answer was cut off')));
  });
  request.end(body);
  return promise.finally(() => {
    for (const timer of timers) clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  });
}
