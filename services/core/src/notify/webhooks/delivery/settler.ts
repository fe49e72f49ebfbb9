import { Failures, type Logger, pause } from '@skerry/kit';
import type { Kysely } from 'kysely';
import type { AttemptNote, Schema } from '../../../store/schema.ts';
import type { Endpoint } from '../endpoints.ts';
import { stopWebhook } from '../stop.ts';
import {
  type Claimed,
  type EndpointNote,
  endFailures,
  noteEndpoints,
  type Settled,
  settleDeliveries,
} from './deliveries.ts';
import type { Attempted, Next } from './schedule.ts';

/** Outcomes in one statement. */
const BATCH_MAX = 500;
/** So long outcomes gather before they are written: nobody waits for them, and a statement costs as much as many of them. */
const GATHER_MS = 10;
/** Outcomes wait no longer than this for a database that failed. */
const RETRY_MAX_MS = 10_000;
/** How an endpoint does is written this often at most while it stays so, since other processes write it, too. */
const NOTE_MS = 60_000;

/** What was written last of an endpoint. */
interface Written {
  readonly isFailing: boolean;
  /** By this machine's uptime. */
  readonly notedMs: number;
}

export interface SettlerOptions {
  readonly db: Kysely<Schema>;
  readonly now: () => number;
  readonly log: Logger;
  /** How long outcomes gather; until the signal ends at most. */
  readonly gather?: (signal: AbortSignal) => Promise<unknown>;
}

const noteOf = (attempted: Attempted, nowMs: number): AttemptNote => ({
  at_ms: nowMs - attempted.durationMs,
  duration_ms: attempted.durationMs,
  status: attempted.ok ? attempted.status : attempted.failure.status,
  ...(attempted.ok ? {} : { code: attempted.failure.code, message: attempted.failure.message }),
});

/** Writes what became of attempts, many in one statement: while one is being written the next gather. */
export class Settler {
  readonly #options: SettlerOptions;
  readonly #queue: Settled[] = [];
  readonly #endpoints = new Map<number, EndpointNote>();
  /** Webhooks whose endpoints took something that is written, while it is not written of themselves. */
  readonly #well = new Set<number>();
  readonly #gone = new Map<number, Endpoint>();
  /** Of each endpoint as it was read: one that was read again, as after a change by its owner, begins anew. */
  readonly #written = new WeakMap<Endpoint, Written>();
  readonly #closed = new AbortController();
  readonly #failures: Failures;
  #writing: Promise<void> | undefined;
  #underWay = 0;

  constructor(options: SettlerOptions) {
    this.#options = options;
    this.#failures = new Failures({
      log: options.log,
      what: 'results of deliveries could not be written; retrying',
      maxMs: RETRY_MAX_MS,
    });
  }

  get unsettled(): number {
    return this.#queue.length + this.#underWay;
  }

  add(endpoint: Endpoint, claimed: Claimed, attempted: Attempted, next: Next): void {
    const nowMs = this.#options.now();
    this.#queue.push({
      webhook: claimed.webhook,
      seq: claimed.seq,
      leaseEndMs: claimed.leaseEndMs,
      state: next.state,
      dueMs: next.state === 'waiting' ? next.atMs : nowMs,
      note: noteOf(attempted, nowMs),
    });
    this.#noteEndpoint(endpoint, attempted, nowMs);
    if (!attempted.ok && attempted.failure.code === 'WEBHOOK_GONE') this.#gone.set(endpoint.number, endpoint);
    this.#writing ??= this.#write();
  }

  /** Writes what there is; gives up at once where the database is away, since leases give it back. */
  async close(): Promise<void> {
    this.#closed.abort();
    await this.#writing;
  }

  #noteEndpoint(endpoint: Endpoint, attempted: Attempted, nowMs: number): void {
    const { number: webhook } = endpoint;
    const written = this.#written.get(endpoint);
    const isFailing = !attempted.ok;
    const retryAfterMs = attempted.ok ? null : attempted.failure.retryAfterMs;
    const uptimeMs = performance.now();
    const isNews =
      written?.isFailing !== isFailing || retryAfterMs !== null || uptimeMs - written.notedMs >= NOTE_MS;
    if (!isNews) return;
    const waiting = this.#endpoints.get(webhook);
    this.#endpoints.set(
      webhook,
      isFailing
        ? {
            webhook,
            failedMs: nowMs,
            holdUntilMs: retryAfterMs === null ? (waiting?.holdUntilMs ?? null) : nowMs + retryAfterMs,
            deliveredMs: waiting?.deliveredMs ?? null,
          }
        : { webhook, failedMs: null, holdUntilMs: null, deliveredMs: nowMs },
    );
    this.#written.set(endpoint, { isFailing, notedMs: uptimeMs });
  }

  async #write(): Promise<void> {
    const { gather = (signal) => pause(GATHER_MS, signal) } = this.#options;
    try {
      while (this.#queue.length + this.#well.size + this.#endpoints.size + this.#gone.size > 0) {
        if (this.#queue.length < BATCH_MAX) await gather(this.#closed.signal);
        if (!(await this.#writeSome())) return;
      }
    } finally {
      // In the step that saw nothing left: whoever comes after it begins anew.
      this.#writing = undefined;
    }
  }

  /** @returns whether to go on: false once closed, while the database is away */
  async #writeSome(): Promise<boolean> {
    const { db, now, log } = this.#options;
    const batch = this.#queue.splice(0, BATCH_MAX);
    this.#underWay = batch.length;
    try {
      if (batch.length > 0) await settleDeliveries(db, batch, now());
      for (const { webhook, state } of batch) if (state === 'delivered') this.#well.add(webhook);
      this.#underWay = 0;
      batch.length = 0;
      if (this.#well.size > 0) await endFailures(db, [...this.#well]);
      this.#well.clear();
      const notes = [...this.#endpoints.values()];
      if (notes.length > 0) await noteEndpoints(db, notes);
      for (const note of notes)
        if (this.#endpoints.get(note.webhook) === note) this.#endpoints.delete(note.webhook);
      for (const [number, { webhookId }] of this.#gone) {
        await stopWebhook(db, number, 'disabled', 'WEBHOOK_GONE', now());
        log.warn({ webhook_id: webhookId }, 'disabled a webhook: its endpoint returned 410');
        this.#gone.delete(number);
      }
      this.#failures.clear();
      return true;
    } catch (error) {
      this.#queue.unshift(...batch);
      this.#underWay = 0;
      if (this.#closed.signal.aborted) return false;
      await pause(this.#failures.note(error), this.#closed.signal);
      return true;
    }
  }
}
