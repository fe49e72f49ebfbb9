import type { IncomingHttpHeaders } from 'node:http';
import { AppError } from '@skerry/protocol';
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import { type AddressSet, clientKeyOf, createAddressSet, findClient } from './client-address.ts';
import { type Bucket, type Taken, takeOne } from './token-bucket.ts';

/** The classes of the specification ("Limits"), and one for what costs nothing and must answer always. */
export const RATE_CLASSES = ['general', 'authenticated', 'heavy', 'unlimited'] as const;
export type RateClass = (typeof RATE_CLASSES)[number];
export type LimitedClass = Exclude<RateClass, 'unlimited'>;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Which rate counts requests of this route. A server with limits registers no route without it. */
    rateClass?: RateClass;
  }
}

export interface RateLimitOptions {
  readonly isEnabled: boolean;
  /** Requests of one client in a minute. */
  readonly perMinute: Readonly<Record<LimitedClass, number>>;
  /** Proxies whose X-Forwarded-For is believed: addresses and CIDR ranges. */
  readonly trustedProxies: readonly string[];
  /** Clients that are not limited: addresses and CIDR ranges. */
  readonly exempt: readonly string[];
  /** Routes that say no class count as general, instead of being refused at the start. */
  readonly isGeneralByDefault?: boolean;
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number;
}

/**
 * Clients remembered in each class, some 15 MB of them. Beyond it the one that was silent longest is forgotten. To have one's
 * own bucket forgotten that way takes a request from this many other addresses, all within the minute in which it would be
 * full again anyway.
 */
export const MAX_BUCKETS = 100_000;

/** The buckets of one class, the longest silent first. */
export class BucketTable {
  readonly #buckets = new Map<string, Bucket>();
  readonly #perMinute: number;
  readonly #maxBuckets: number;

  constructor(perMinute: number, maxBuckets: number = MAX_BUCKETS) {
    this.#perMinute = perMinute;
    this.#maxBuckets = maxBuckets;
  }

  get size(): number {
    return this.#buckets.size;
  }

  take(key: string, nowMs: number): Taken {
    const taken = takeOne(this.#buckets.get(key), this.#perMinute, nowMs);
    this.#buckets.delete(key);
    this.#buckets.set(key, taken.bucket);
    if (this.#buckets.size > this.#maxBuckets) this.#buckets.delete(this.#buckets.keys().next().value!);
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

/** Other marks of a proxy say that there is somebody behind the peer, not who. */
export function forwardedForOf(headers: IncomingHttpHeaders): string | undefined {
  const isProxied = headers.forwarded ?? headers['x-real-ip'] ?? headers.via;
  const forwardedFor = headers['x-forwarded-for'] ?? (isProxied === undefined ? undefined : 'unknown');
  return forwardedFor === undefined ? undefined : String(forwardedFor);
}

/** Token buckets per class and client, in the memory of this process (docs/operating.md, "Limits"). */
export function createRateLimiter(options: RateLimitOptions, events: LimiterEvents = {}): RateLimiter {
  const { isEnabled, perMinute, now = () => performance.now() } = options;
  const isTrustedProxy: AddressSet = createAddressSet(options.trustedProxies);
  const isExempt: AddressSet = createAddressSet(options.exempt);
  const tables: Record<LimitedClass, BucketTable> = {
    general: new BucketTable(perMinute.general),
    authenticated: new BucketTable(perMinute.authenticated),
    heavy: new BucketTable(perMinute.heavy),
  };
  return {
    check(request, reply) {
      // A path that does not exist counts too. A preflight costs nothing, and browsers ask it by themselves.
      const rateClass = request.routeOptions.config.rateClass ?? 'general';
      if (!isEnabled || rateClass === 'unlimited' || request.method === 'OPTIONS') return;
      const peer = request.socket.remoteAddress ?? '';
      const client = findClient(peer, forwardedForOf(request.headers), isTrustedProxy);
      if (client.isRelayed) events.onRelay?.(peer);
      // Behind a proxy that is not trusted there may be anybody: its own standing does not cover them.
      if (!client.isRelayed && isExempt(client.address)) return;
      const taken = tables[rateClass].take(clientKeyOf(client.address), now());
      reply.headers(headersOf(rateClass, perMinute[rateClass], taken));
      if (taken.isAllowed) return;
      throw new AppError(
        'RATE_LIMITED',
        `more than ${perMinute[rateClass]} ${rateClass} requests a minute; try again in ${taken.retryAfterSeconds} s`,
        {
          details: {
            rate_class: rateClass,
            per_minute: perMinute[rateClass],
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
