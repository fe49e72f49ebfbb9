import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { ErrorCode } from '@skerry/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from '../daemon/log.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** When a request of this route is slow, in ms. `Infinity` where the client, or a program of somebody's, sets the pace. */
    slowAfterMs?: number;
  }
}

/**
 * What was ended without an answer, as there is no room or another client has it now: a connection, a body that came, or whoever took too
 * long to read or to send a file.
 */
export type LetGo = 'connection' | 'body' | 'reader' | 'sender';

/** What somebody who counts wants to know of requests. Every value is one of few: a route is its pattern, never a path. */
export interface HttpObserver {
  /** `seconds` from the request's head to the head of the answer; undefined for streams. */
  answered(request: { method: string; route: string; status: number; seconds: number | undefined }): void;
  refused(code: ErrorCode): void;
  letGo(kind: LetGo): void;
}

/** An answer that begins later than this is worth a warning. */
const SLOW_REQUEST_MS = 2_000;
const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

/** The caller's own id of a request where it has the form of one, else a new one. */
export function requestIdOf(request: Pick<IncomingMessage, 'headers'>): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID();
}

const begun = new WeakMap<FastifyReply, number>();

/** Notes when the answer began; what comes after is the reader's pace. */
export function noteAnswer(reply: FastifyReply): void {
  begun.set(reply, reply.elapsedTime);
}

/** Slow requests are told one by one no more often than this; those in between are counted. */
const SLOW_PERIOD_MS = 10_000;
/** Routes that the count names; the rest counts together. */
const SLOW_ROUTES_MAX = 20;

/** Tells of slow requests: the first with all that is known of it, then how many there were. */
export class SlowRequests {
  readonly #log: Logger;
  readonly #periodMs: number;
  #routes = new Map<string, number>();
  #slowestMs = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(log: Logger, periodMs = SLOW_PERIOD_MS) {
    this.#log = log;
    this.#periodMs = periodMs;
  }

  /** @param tell writes the line of this one */
  note(route: string, answeredMs: number, tell: () => void): void {
    if (this.#timer === undefined) {
      tell();
      this.#timer = setTimeout(() => this.#sum(), this.#periodMs).unref();
      return;
    }
    const name = this.#routes.has(route) || this.#routes.size < SLOW_ROUTES_MAX ? route : 'others';
    this.#routes.set(name, (this.#routes.get(name) ?? 0) + 1);
    this.#slowestMs = Math.max(this.#slowestMs, answeredMs);
  }

  #sum(): void {
    this.#timer = undefined;
    if (this.#routes.size === 0) return;
    const routes = Object.fromEntries(this.#routes);
    const count = [...this.#routes.values()].reduce((sum, one) => sum + one, 0);
    const line = { count, routes, slowest_ms: Math.round(this.#slowestMs), period_ms: this.#periodMs };
    this.#log.warn(line, 'slow requests');
    this.#routes = new Map();
    this.#slowestMs = 0;
    // What is still slow is summed, too: one line in each period.
    this.#timer = setTimeout(() => this.#sum(), this.#periodMs).unref();
  }
}

/** One line for each request, and a count. */
export function traceAnswer(
  request: FastifyRequest,
  reply: FastifyReply,
  slow: SlowRequests,
  observer?: HttpObserver,
): void {
  // Answers that a route writes by itself (streams) begin at once and end when the reader goes.
  const answeredMs = begun.get(reply);
  const route = request.is404 ? 'none' : (request.routeOptions.url ?? 'none');
  const { method } = request;
  const { statusCode: status } = reply.raw;
  const seconds = answeredMs === undefined ? undefined : answeredMs / 1000;
  observer?.answered({ method, route, status, seconds });
  const isSlow = (answeredMs ?? 0) > (request.routeOptions.config.slowAfterMs ?? SLOW_REQUEST_MS);
  const line = {
    method,
    route,
    status,
    answered_ms: answeredMs === undefined ? null : Math.round(answeredMs),
    total_ms: Math.round(reply.elapsedTime),
  };
  if (isSlow)
    slow.note(`${method} ${route}`, answeredMs ?? 0, () => request.log.warn(line, 'a slow request'));
  else request.log.debug(line, 'request');
}
