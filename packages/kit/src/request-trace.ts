import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { ErrorCode } from '@skerry/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** When a request of this route is slow, in ms. `Infinity` where the client sets the pace. */
    slowAfterMs?: number;
  }
}

/** What somebody who counts wants to know of requests. Every value is one of few: a route is its pattern, never a path. */
export interface HttpObserver {
  /** `seconds` from the request's head to the head of the answer; undefined for streams. */
  answered(request: { method: string; route: string; status: number; seconds: number | undefined }): void;
  refused(code: ErrorCode): void;
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

/** One line for each request, and a count. */
export function traceAnswer(request: FastifyRequest, reply: FastifyReply, observer?: HttpObserver): void {
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
  if (isSlow) request.log.warn(line, 'a slow request');
  else request.log.debug(line, 'request');
}
