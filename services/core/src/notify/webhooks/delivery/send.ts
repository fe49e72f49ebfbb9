import { createReach, type MayReach } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { AnswerHead } from './answer.ts';
import { TooLate } from './connection.ts';
import { Connections, type Place } from './connections.ts';
import { QUICK_MAX } from './lane.ts';
import { checkLiteralHost, createCheckedLookup } from './resolve.ts';
import { type Attempted, type AttemptFailure, parseRetryAfterMs } from './schedule.ts';

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

function failureOfStatus(status: number, retryAfterMs: number | null): AttemptFailure | undefined {
  if (status >= 200 && status < 300) return undefined;
  if (status === 410)
    return failureOf('WEBHOOK_GONE', 'it returned 410: it wants no more deliveries', status);
  const why = status >= 300 && status < 400 ? ', and redirects are not followed' : '';
  return failureOf('WEBHOOK_ANSWER_REFUSED', `it returned ${status}${why}`, status, retryAfterMs);
}

/** How a connection ends that an endpoint closed at the moment that it was used again. */
const CLOSED = new Set<unknown>(['ECONNRESET', 'EPIPE']);

/** What a header may say: it ends no line, and is the same in every encoding. */
const PLAIN = /^[ -~]*$/;

interface SenderOptions extends SenderSettings {
  readonly now: () => number;
}

/** What all requests to one endpoint have in common. */
interface Target extends Place {
  /** How each begins: its first line, and the headers before those of the delivery. */
  readonly begin: string;
}

function requestOf({ begin }: Target, headers: Readonly<Record<string, string>>, body: string): string {
  let text = begin;
  for (const name in headers) {
    if (!PLAIN.test(headers[name]!)) throw new TypeError(`the header ${name} must be visible ASCII`);
    text += `${name}: ${headers[name]}\r\n`;
  }
  return `${text}\r\n${body}`;
}

/**
 * Sends to endpoints of strangers: https, public addresses, no redirects, one deadline over everything. Of HTTP/1.1 it speaks by
 * itself what a POST needs of whose answer only the status counts (docs/decisions.md 173).
 */
class StrictSender implements Sender {
  readonly timeoutMs: number;
  readonly #allowHttp: boolean;
  readonly #mayCall: MayReach;
  readonly #connections: Connections;
  readonly #targets = new WeakMap<URL, Target>();
  readonly #now: () => number;

  constructor(options: SenderOptions) {
    const { allowHttp = false, timeoutMs = TIMEOUT_MS, ca, allowedAddresses = [], dnsServers, now } = options;
    const { idleConnectionsMax: idleMax = IDLE_CONNECTIONS_MAX } = options;
    this.timeoutMs = timeoutMs;
    this.#allowHttp = allowHttp;
    this.#mayCall = createReach(false, allowedAddresses);
    this.#connections = new Connections({
      lookup: createCheckedLookup({ mayCall: this.#mayCall, dnsServers }),
      ...{ ca, idleMax, idleMs: IDLE_CONNECTION_MS, idlePerPlace: IDLE_CONNECTIONS_PER_HOST },
    });
    this.#now = now;
  }

  check(url: URL): void {
    if (url.protocol !== 'https:' && !(this.#allowHttp && url.protocol === 'http:'))
      throw new AppError('WEBHOOK_URL_REFUSED', 'only https is allowed');
    checkLiteralHost(url.hostname, this.#mayCall);
  }

  async send(url: URL, headers: Readonly<Record<string, string>>, body: string): Promise<Attempted> {
    const startMs = performance.now();
    let status = 0;
    let failure: AttemptFailure | undefined;
    try {
      const target = this.#targetOf(url);
      const head = await this.#post(target, requestOf(target, headers, body), startMs);
      status = head.status;
      failure = failureOfStatus(status, parseRetryAfterMs(head.retryAfter, this.#now()));
    } catch (error) {
      failure = this.#failureOfError(error as Error);
    }
    const durationMs = Math.round(performance.now() - startMs);
    return failure ? { ok: false, failure, durationMs } : { ok: true, status, durationMs };
  }

  close(): void {
    this.#connections.close();
  }

  /** Throws WEBHOOK_URL_REFUSED. What a URL says of itself is judged once: no later delivery changes it. */
  #targetOf(url: URL): Target {
    let target = this.#targets.get(url);
    if (!target) {
      this.check(url);
      const isTls = url.protocol === 'https:';
      target = {
        ...{ origin: url.origin, isTls, host: url.hostname.replace(/^\[(.*)\]$/, '$1') },
        port: Number(url.port) || (isTls ? 443 : 80),
        begin: `POST ${url.pathname}${url.search} HTTP/1.1\r\nhost: ${url.host}\r\nconnection: keep-alive\r\n`,
      };
      this.#targets.set(url, target);
    }
    return target;
  }

  /** Over a connection that has served before or, where the endpoint closes it unheard, once more over a new one. */
  async #post(target: Target, text: string, startMs: number): Promise<AnswerHead> {
    const kept = this.#connections.take(target.origin);
    if (kept) {
      try {
        return await kept.ask(text, this.timeoutMs);
      } catch (error) {
        if (kept.wasHeard || !CLOSED.has((error as NodeJS.ErrnoException).code)) throw error;
      }
    }
    const leftMs = Math.max(1, this.timeoutMs - (performance.now() - startMs));
    return this.#connections.open(target).ask(text, leftMs);
  }

  #failureOfError(error: NodeJS.ErrnoException): AttemptFailure {
    if (error instanceof AppError) return failureOf(error.code, error.message);
    if (error instanceof TooLate) return failureOf('WEBHOOK_TIMED_OUT', `no answer in ${this.timeoutMs} ms`);
    // The code alone: a message of the system may name addresses that are nobody's business.
    return failureOf('WEBHOOK_UNREACHABLE', `no connection (${error.code ?? 'it was closed'})`);
  }
}

export const createSender = (options: SenderOptions): Sender => new StrictSender(options);
