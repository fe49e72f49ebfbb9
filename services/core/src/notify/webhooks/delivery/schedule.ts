import { backoffMs } from '@skerry/kit';
import type { ErrorCode } from '@skerry/protocol';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/**
 * The pause after each failed attempt (Standard Webhooks, "Deliverability and reliability"): ten attempts over 75 hours and
 * a half. After the last the delivery is dead.
 */
export const RETRY_PAUSES_MS: readonly number[] = [
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  14 * HOUR_MS,
  20 * HOUR_MS,
  24 * HOUR_MS,
];

/** Up to this part is added to each pause, so that what failed together does not come back together. */
const JITTER = 0.2;

/** No endpoint may put a delivery off for longer. */
const RETRY_AFTER_MAX_MS = 24 * HOUR_MS;

/** No delivery waits for longer: what is due later was planned while the clock was ahead. */
export const DUE_AHEAD_MAX_MS = Math.ceil(Math.max(RETRY_AFTER_MAX_MS, ...RETRY_PAUSES_MS) * (1 + JITTER));

/** A whole endpoint that fails again and again is left alone this long at most. */
const COOLDOWN_MAX_MS = MINUTE_MS;
const COOLDOWN_BASE_MS = 250;

/** An endpoint that took nothing for this long is paused. It is longer than one delivery's whole schedule. */
export const PAUSE_AFTER_MS = 96 * HOUR_MS;

/** Trying again would change nothing. */
const FINAL: ReadonlySet<ErrorCode> = new Set(['WEBHOOK_GONE', 'DELIVERY_NOT_FOUND']);

export interface AttemptFailure {
  readonly code: ErrorCode;
  /** A sentence; never anything that the endpoint said. */
  readonly message: string;
  /** HTTP status, where there was an answer. */
  readonly status: number | null;
  /** How long the endpoint asked to be left alone. */
  readonly retryAfterMs: number | null;
}

/** What became of one attempt. */
export type Attempted =
  | { readonly ok: true; readonly status: number; readonly durationMs: number }
  | { readonly ok: false; readonly failure: AttemptFailure; readonly durationMs: number };

export type Next =
  | { readonly state: 'delivered' }
  | { readonly state: 'waiting'; readonly atMs: number }
  | { readonly state: 'dead' };

/**
 * What happens to a delivery after an attempt.
 * @param attempts how many there were, this one included
 */
export function decideNext(attempted: Attempted, attempts: number, nowMs: number, random: number): Next {
  if (attempted.ok) return { state: 'delivered' };
  const pauseMs = RETRY_PAUSES_MS[attempts - 1];
  if (pauseMs === undefined || FINAL.has(attempted.failure.code)) return { state: 'dead' };
  const ownMs = pauseMs * (1 + JITTER * random);
  return { state: 'waiting', atMs: Math.round(nowMs + Math.max(ownMs, attempted.failure.retryAfterMs ?? 0)) };
}

/**
 * How long a whole endpoint is left alone after failures in a row.
 * @param failures from 1
 */
export const cooldownMs = (failures: number, random: number): number =>
  backoffMs(failures, COOLDOWN_BASE_MS, COOLDOWN_MAX_MS, random);

/** How long an endpoint that asked for it is left alone yet. A time that none can have asked for comes of a clock that was ahead. */
export function heldForMs(holdUntilMs: number, nowMs: number): number {
  const ms = holdUntilMs - nowMs;
  return ms > 0 && ms <= RETRY_AFTER_MAX_MS ? ms : 0;
}

/** `Retry-After` (RFC 9110, section 10.2.3): seconds or a date; as milliseconds from now, bounded; null: not understood. */
export function parseRetryAfterMs(text: string | undefined, nowMs: number): number | null {
  if (text === undefined) return null;
  const ms = /^[0-9]{1,10}$/.test(text.trim()) ? Number(text) * SECOND_MS : Date.parse(text) - nowMs;
  if (Number.isNaN(ms)) return null;
  return Math.min(RETRY_AFTER_MAX_MS, Math.max(0, ms));
}
