import {
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest, type RequestOptions } from 'node:https';
import type { LookupFunction } from 'node:net';
import { urlToHttpOptions } from 'node:url';
import { boundIdle, createReach, type MayReach, refuseUpgrade } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { QUICK_MAX } from './lane.ts';
import { checkLiteralHost, createCheckedLookup } from './resolve.ts';
import { type Attempted, type AttemptFailure, parseRetryAfterMs } from './schedule.ts';

/** What an endpoint says beside its status is not read; more of it than this ends the connection. */
const ANSWER_MAX_BYTES = 64 * 1024;
const ANSWER_MAX_HEADER_BYTES = 16 * 1024;
/** How long the rest of an answer may take once its status is known. */
const ANSWER_REST_MS = 1_000;
const IDLE_CONNECTION_MS = 10_000;
/** As many as endpoints that answer ever use at once: many webhooks may lead to one host, where fewer would be closed and made anew all the time. */
const IDLE_CONNECTIONS_PER_HOST = QUICK_MAX;
/** Idle connections to all hosts: a stranger gives each webhook a name of its own, as many as there are webhooks. */
const IDLE_CONNECTIONS_MAX = 1_024;

const TIMEOUT_MS = 15_000;

/** Everything strict where left out. */
export interface SenderSettings {
  /** Addresses and ranges that are called although they are not public. */
  readonly allowedAddresses?: readonly string[] | undefined;
  readonly allowHttp?: boolean | undefined;
  /** From the beginning of an attempt, names and TLS included, to the status of the answer. */
  readonly timeoutMs?: number | undefined;
  /** Certificate authorities instead of the usual ones (PEM). */
  readonly ca?: string | undefined;
  /** `address:port` of name servers instead of the machine's own. */
  readonly dnsServers?: readonly string[] | undefined;
  /** Connections that are kept for the next delivery, of all hosts. */
  readonly idleConnectionsMax?: number | undefined;
}

export interface Sender {
  readonly timeoutMs: number;
  /** Throws WEBHOOK_URL_REFUSED for what needs no connection to be refused. */
  check(url: URL): void;
  /** One POST. Never throws. */
  send(url: URL, headers: Readonly<Record<string, string>>, body: string): Promise<Attempted>;
  close(): void;
}

const failureOf = (
  code: AttemptFailure['code'],
  message: string,
  status: number | null = null,
  retryAfterMs: number | null = null,
): AttemptFailure => ({ code, message, status, retryAfterMs });

function failureOfError(error: NodeJS.ErrnoException): AttemptFailure {
  if (error instanceof AppError) return failureOf(error.code, error.message);
  // The code alone: a message of the system may name addresses that are nobody's business.
  return failureOf('WEBHOOK_UNREACHABLE', `no connection (${error.code ?? 'it was closed'})`);
}

function failureOfStatus(status: number, retryAfterMs: number | null): AttemptFailure | undefined {
  if (status >= 200 && status < 300) return undefined;
  if (status === 410)
    return failureOf('WEBHOOK_GONE', 'it returned 410: it wants no more deliveries', status);
  const why = status >= 300 && status < 400 ? ', and redirects are not followed' : '';
  return failureOf('WEBHOOK_ANSWER_REFUSED', `it returned ${status}${why}`, status, retryAfterMs);
}

/** Reads the rest of an answer away, within bounds, so that its connection can serve again. */
function finishAnswer(answer: IncomingMessage, done: () => void): void {
  let sizeBytes = 0;
  const cut = setTimeout(() => answer.destroy(), ANSWER_REST_MS);
  answer.on('data', (chunk: Buffer) => {
    sizeBytes += chunk.length;
    if (sizeBytes > ANSWER_MAX_BYTES) answer.destroy();
  });
  answer.once('error', () => {});
  answer.once('close', () => {
    clearTimeout(cut);
    done();
  });
}

interface SenderOptions extends SenderSettings {
  readonly now: () => number;
}

/** What all requests to one endpoint have in common. */
interface Target {
  readonly request: typeof httpRequest;
  readonly options: RequestOptions;
  /** Names and values in turn, before those of the delivery. */
  readonly headers: readonly string[];
}

interface Post {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Sends to endpoints of strangers: https, public addresses, no redirects, one deadline over everything. */
class StrictSender implements Sender {
  readonly timeoutMs: number;
  readonly #allowHttp: boolean;
  readonly #mayCall: MayReach;
  readonly #lookup: LookupFunction;
  readonly #agents: { readonly http: HttpAgent; readonly https: HttpsAgent };
  readonly #targets = new WeakMap<URL, Target>();
  readonly #now: () => number;

  constructor(options: SenderOptions) {
    const { allowHttp = false, timeoutMs = TIMEOUT_MS, ca, allowedAddresses = [], dnsServers, now } = options;
    const { idleConnectionsMax: idleMax = IDLE_CONNECTIONS_MAX } = options;
    const agentOptions = {
      keepAlive: true,
      maxFreeSockets: IDLE_CONNECTIONS_PER_HOST,
      timeout: IDLE_CONNECTION_MS + timeoutMs,
    };
    this.timeoutMs = timeoutMs;
    this.#allowHttp = allowHttp;
    this.#mayCall = createReach(false, allowedAddresses);
    this.#lookup = createCheckedLookup({ mayCall: this.#mayCall, dnsServers });
    this.#agents = {
      http: boundIdle(new HttpAgent(agentOptions), idleMax),
      https: boundIdle(new HttpsAgent({ ...agentOptions, ...(ca === undefined ? {} : { ca }) }), idleMax),
    };
    this.#now = now;
  }

  check(url: URL): void {
    if (url.protocol !== 'https:' && !(this.#allowHttp && url.protocol === 'http:'))
      throw new AppError('WEBHOOK_URL_REFUSED', 'only https is allowed');
    checkLiteralHost(url.hostname, this.#mayCall);
  }

  async send(url: URL, headers: Readonly<Record<string, string>>, body: string): Promise<Attempted> {
    const startMs = performance.now();
    let result: AttemptFailure | number;
    try {
      result = await this.#post({ url, headers, body }, this.timeoutMs, true);
    } catch (error) {
      result = failureOfError(error as Error);
    }
    const durationMs = Math.round(performance.now() - startMs);
    return typeof result === 'number'
      ? { ok: true, status: result, durationMs }
      : { ok: false, failure: result, durationMs };
  }

  close(): void {
    this.#agents.http.destroy();
    this.#agents.https.destroy();
  }

  /** Throws WEBHOOK_URL_REFUSED. What a URL says of itself is judged once: no later delivery changes it. */
  #targetOf(url: URL): Target {
    let target = this.#targets.get(url);
    if (!target) {
      this.check(url);
      const { hostname, port, path } = urlToHttpOptions(url);
      const isTls = url.protocol === 'https:';
      target = {
        request: isTls ? httpsRequest : httpRequest,
        options: {
          ...{ host: hostname, port: port ?? null, path, method: 'POST' },
          ...{ lookup: this.#lookup, maxHeaderSize: ANSWER_MAX_HEADER_BYTES },
          agent: isTls ? this.#agents.https : this.#agents.http,
        },
        headers: ['host', url.host],
      };
      this.#targets.set(url, target);
    }
    return target;
  }

  /** With a list of headers, and options that are made once for a URL, a request costs Node a third less. */
  #open({ url, headers }: Post): ClientRequest {
    const target = this.#targetOf(url);
    const list = [...target.headers];
    for (const name in headers) list.push(name, headers[name]!);
    return target.request({ ...target.options, headers: list });
  }

  /** @returns the status of an answer that takes the delivery, or why there is none */
  async #post(post: Post, leftMs: number, mayRepeat: boolean): Promise<AttemptFailure | number> {
    const { promise, resolve } = Promise.withResolvers<AttemptFailure | number>();
    const startMs = performance.now();
    const request = this.#open(post);
    refuseUpgrade(request);
    const deadline = setTimeout(() => {
      resolve(failureOf('WEBHOOK_TIMED_OUT', `no answer in ${this.timeoutMs} ms`));
      request.destroy();
    }, leftMs);
    request.once('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(deadline);
      // The endpoint closed an idle connection at the moment that it was used again.
      const isStale = request.reusedSocket && error.code === 'ECONNRESET';
      const restMs = Math.max(1, leftMs - (performance.now() - startMs));
      resolve(isStale && mayRepeat ? this.#post(post, restMs, false) : failureOfError(error));
      // A connection that breaks while it is being destroyed says so once more.
      request.on('error', () => {});
    });
    request.once('response', (answer) => {
      clearTimeout(deadline);
      const status = answer.statusCode ?? 0;
      const retryAfterMs = parseRetryAfterMs(answer.headers['retry-after'], this.#now());
      finishAnswer(answer, () => resolve(failureOfStatus(status, retryAfterMs) ?? status));
    });
    request.end(post.body);
    return promise;
  }
}

export const createSender = (options: SenderOptions): Sender => new StrictSender(options);
