import { RATE_CLASSES, type RateClass } from '@skerry/protocol/api/operation';
import { AppError } from '@skerry/protocol/forms';
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import { settings } from '../daemon/config.ts';
import { type ClientOptions, createClientOf } from './client.ts';
import { OwnHosts } from './own-hosts.ts';
import { nothingRecent, type Recent, type Taken, takeOne } from './sliding-window.ts';

export type LimitedClass = Exclude<RateClass, 'unlimited'>;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Which rate counts requests of this route. A server with limits registers no route without it. */
    rateClass?: RateClass;
    /** Where it depends on the request; `rateClass` says what it is for most. */
    rateClassOf?: (request: FastifyRequest) => RateClass;
  }
}

export interface RateLimitOptions extends ClientOptions {
  readonly isEnabled: boolean;
  /** Requests of one client in a minute. */
  readonly perMinute: Readonly<Record<LimitedClass, number>>;
  /** Over how many processes a client's requests are spread evenly; each allows its part. One where left out. */
  readonly processes?: () => number;
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number;
}

/** Who is not limited, where no service knows better. */
const EXEMPT = 'clients without limits: addresses and ranges, comma-separated; "none" for none';

/** Settings of a service that limits rates, and whose requests cost much alike (docs/operating.md, "Limits"). */
export const generalRateSettings = (exempt: string = EXEMPT) => ({
  rateLimits: settings.flag(true, 'whether to limit the rate of requests'),
  rateGeneral: settings.integer(1, 1_000_000, 100, 'general requests per client and minute'),
  rateExempt: settings.addressRanges(['127.0.0.0/8', '::1'], exempt),
  trustedProxies: settings.addressRanges(
    [],
    'proxies whose X-Forwarded-For is trusted: addresses and ranges, comma-separated',
  ),
});

interface RateTexts {
  /** What is expensive, in words. */
  readonly heavy: string;
  /** How often a client may ask for it in a minute; 10 where left out. */
  readonly heavyPerMinute?: number;
  readonly exempt?: string;
}

/** The same of a service that also answers what is signed, and what is expensive. */
export function rateSettings({ heavy, heavyPerMinute = 10, exempt }: RateTexts) {
  const { rateLimits, rateGeneral, ...others } = generalRateSettings(exempt);
  return {
    ...{ rateLimits, rateGeneral },
    rateAuthenticated: settings.integer(1, 1_000_000, 300, 'signed requests per client and minute'),
    rateHeavy: settings.integer(1, 1_000_000, heavyPerMinute, `${heavy} per client and minute`),
    ...others,
  };
}

type ConfigOfRates<S extends Record<string, { parse(text: string): unknown }>> = {
  readonly [K in keyof S]: ReturnType<S[K]['parse']>;
};
export type GeneralRateConfig = ConfigOfRates<ReturnType<typeof generalRateSettings>>;
type RateConfig = ConfigOfRates<ReturnType<typeof rateSettings>>;

export const rateLimitsOf = (config: GeneralRateConfig & Partial<RateConfig>): RateLimitOptions => ({
  isEnabled: config.rateLimits,
  perMinute: {
    general: config.rateGeneral,
    authenticated: config.rateAuthenticated ?? config.rateGeneral,
    heavy: config.rateHeavy ?? config.rateGeneral,
  },
  trustedProxies: config.trustedProxies,
  exempt: config.rateExempt,
});

/** The same limits, which do not hold for the hosts of these addresses: what asks from there is the network's own. */
export const exemptHosts = (limits: RateLimitOptions, urls: readonly string[]): RateLimitOptions => ({
  ...limits,
  ownHosts: new OwnHosts(urls),
});

/**
 * Clients remembered in each class, 25 MB of them, 60 where all ask again and again. Beyond it the one that was silent longest is forgotten. To have
 * one's own requests forgotten that way takes a request from this many other addresses, all within the minute after
 * which they would not count anyway.
 */
const MAX_CLIENTS = 100_000;

/** What the clients of one class took, the longest silent first. */
export class ClientTable {
  readonly #clients = new Map<string, Recent>();
  readonly #perMinute: number;
  readonly #maxClients: number;

  constructor(perMinute: number, maxClients: number = MAX_CLIENTS) {
    this.#perMinute = perMinute;
    this.#maxClients = maxClients;
  }

  get size(): number {
    return this.#clients.size;
  }

  /** @param perMinute of this request's client, where that changes */
  take(key: string, nowMs: number, perMinute = this.#perMinute): Taken {
    const recent = this.#clients.get(key) ?? nothingRecent();
    const taken = takeOne(recent, perMinute, nowMs);
    this.#clients.delete(key);
    this.#clients.set(key, recent);
    if (this.#clients.size > this.#maxClients) this.#clients.delete(this.#clients.keys().next().value!);
    return taken;
  }
}

export interface RateLimiter {
  /** Throws RATE_LIMITED; sets the header fields that say where the client stands. */
  check(request: FastifyRequest, reply: FastifyReply): void;
}

interface LimiterEvents {
  /** A proxy that is not trusted sends requests of others on. */
  onRelay?(peer: string): void;
}

function headersOf(rateClass: LimitedClass, perMinute: number, taken: Taken): Record<string, string> {
  // draft-ietf-httpapi-ratelimit-headers-10: policy (quota, window), and what is left of it.
  return {
    'ratelimit-policy': `"${rateClass}";q=${perMinute};w=60`,
    ratelimit: `"${rateClass}";r=${taken.remaining};t=${taken.resetSeconds}`,
    ...(taken.isAllowed ? {} : { 'retry-after': String(taken.retryAfterSeconds) }),
  };
}

/** Counts per class and client, in the memory of this process (docs/operating.md, "Limits"). */
export function createRateLimiter(options: RateLimitOptions, events: LimiterEvents = {}): RateLimiter {
  const { isEnabled, perMinute, processes = () => 1, now = () => performance.now() } = options;
  const clientOf = createClientOf(options);
  const tables: Record<LimitedClass, ClientTable> = {
    general: new ClientTable(perMinute.general),
    authenticated: new ClientTable(perMinute.authenticated),
    heavy: new ClientTable(perMinute.heavy),
  };
  return {
    check(request, reply) {
      // A path that does not exist counts too. A preflight costs nothing, and browsers ask it by themselves.
      const { config } = request.routeOptions;
      const rateClass = config.rateClassOf?.(request) ?? config.rateClass ?? 'general';
      if (!isEnabled || rateClass === 'unlimited' || request.method === 'OPTIONS') return;
      const { key, isExempt, isRelayed } = clientOf(request);
      if (isRelayed) events.onRelay?.(request.socket.remoteAddress ?? '');
      if (isExempt) return;
      const part = Math.ceil(perMinute[rateClass] / Math.max(1, processes()));
      const taken = tables[rateClass].take(key, now(), part);
      reply.headers(headersOf(rateClass, part, taken));
      if (taken.isAllowed) return;
      throw new AppError(
        'RATE_LIMITED',
        `more than ${part} ${rateClass} requests a minute; try again in ${taken.retryAfterSeconds} s`,
        {
          details: {
            rate_class: rateClass,
            per_minute: part,
            retry_after: taken.retryAfterSeconds,
          },
        },
      );
    },
  };
}

/** Refuses to register a route that does not say which rate counts it. */
export function checkRateClass(route: RouteOptions): void {
  const rateClass = route.config?.rateClass;
  const method = String(route.method);
  if (method === 'OPTIONS' || (rateClass !== undefined && RATE_CLASSES.includes(rateClass))) return;
  throw new Error(`${method} ${route.url} has no config.rateClass (${RATE_CLASSES.join(', ')})`);
}
