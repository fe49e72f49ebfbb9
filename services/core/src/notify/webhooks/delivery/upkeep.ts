import type { Logger } from '@skerry/kit';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../../store/schema.ts';
import { stopReason, stopWebhook } from '../stop.ts';
import { killDeliveries } from './deliveries.ts';
import { DUE_AHEAD_MAX_MS, PAUSE_AFTER_MS } from './schedule.ts';

const DAY_MS = 86_400_000;
/** A clock that is so much further at once was set, or the machine slept. */
const JUMP_MS = 5_000;
/** It is believed when it stayed so for as long, by the machine's uptime. */
const BELIEVED_AFTER_MS = DAY_MS;
/** How long the log keeps a delivery that ended. */
const LOG_KEPT_MS = 14 * DAY_MS;
/** What waits this long, as for a webhook that stays paused, is dead. */
const WAITING_KEPT_MS = 30 * DAY_MS;
/** A signed request is refused when it is older: then its hash need not be remembered any more. */
const REQUEST_KEPT_MS = 20 * 60_000;
/**
 * The id of a deleted webhook: its registration is too old by then to be sent again. Nothing waits for one this long, and every process
 * has read that it is deleted.
 */
const DELETED_KEPT_MS = WAITING_KEPT_MS;
const ROWS_MAX = 10_000;

/** The time by which ages are told: a clock that is ahead for some hours makes nothing old that cannot be had back. */
export class AgeClock {
  readonly #now: () => number;
  readonly #uptime: () => number;
  #base: number;
  #aheadSinceMs: number | undefined;

  /** @param uptime milliseconds since whenever; never set */
  constructor(now: () => number, uptime: () => number = () => performance.now()) {
    this.#now = now;
    this.#uptime = uptime;
    this.#base = now() - uptime();
  }

  /** Milliseconds since 1970. */
  read(): number {
    const uptimeMs = this.#uptime();
    const base = this.#now() - uptimeMs;
    const isAhead = base > this.#base + JUMP_MS;
    if (isAhead) this.#aheadSinceMs ??= uptimeMs;
    else this.#aheadSinceMs = undefined;
    if (!isAhead || uptimeMs - this.#aheadSinceMs! >= BELIEVED_AFTER_MS) this.#base = base;
    return Math.round(this.#base + uptimeMs);
  }
}

/**
 * What was put off while the clock was ahead would wait until its date comes. Of each webhook the upper end of the index is asked,
 * since all that waits may be millions.
 */
export async function bringForward(db: Kysely<Schema>, nowMs: number): Promise<void> {
  await sql`
    update webhook_deliveries set due_ms = ${nowMs}
    where (webhook, seq) in (
      select late.webhook, late.seq from webhooks w cross join lateral (
        select webhook, seq from webhook_deliveries
        where webhook = w.number and state = 'waiting' and due_ms > ${nowMs + DUE_AHEAD_MAX_MS}
        order by due_ms desc limit ${ROWS_MAX}) late
      where w.status <> 'deleted' limit ${ROWS_MAX})`.execute(db);
}

/**
 * Pauses what failed for long, and forgets what is old.
 * @param nowMs by the clock
 * @param agedMs by which ages are told
 */
export async function tidyWebhooks(
  { db, log }: { readonly db: Kysely<Schema>; readonly log: Logger },
  nowMs: number,
  agedMs = nowMs,
): Promise<void> {
  const failing = await db
    .selectFrom('webhooks')
    .select(['number', 'webhook_id'])
    .where('status', '=', 'active')
    .where('failing_since_ms', '<', agedMs - PAUSE_AFTER_MS)
    .limit(ROWS_MAX)
    .execute();
  for (const { number, webhook_id } of failing) {
    await stopWebhook(db, number, 'paused', 'WEBHOOK_FAILING', nowMs);
    log.warn({ webhook_id }, 'paused a webhook: its endpoint accepted nothing for days');
  }
  const forgotten = sql<boolean>`
    (webhook, seq) in (
      select d.webhook, d.seq from webhooks w join webhook_deliveries d on d.webhook = w.number
      where w.status <> 'active' and d.state = 'waiting' and d.planned_ms < ${agedMs - WAITING_KEPT_MS}
      limit ${ROWS_MAX})`;
  await killDeliveries(db, forgotten, stopReason('WEBHOOK_NOT_ACTIVE'), nowMs);
  await sql`
    delete from webhook_deliveries where (webhook, seq) in (
      select webhook, seq from webhook_deliveries
      where state <> 'waiting' and settled_ms < ${agedMs - LOG_KEPT_MS} limit ${ROWS_MAX})`.execute(db);
  await sql`
    delete from webhooks where webhook_id in (
      select webhook_id from webhooks w
      where status = 'deleted' and updated_ms < ${agedMs - DELETED_KEPT_MS}
        and not exists (select from webhook_deliveries d where d.webhook = w.number)
      limit ${ROWS_MAX})`.execute(db);
  await db
    .deleteFrom('webhook_requests')
    .where('time_ms', '<', agedMs - REQUEST_KEPT_MS)
    .execute();
  await db
    .updateTable('webhooks')
    .set({ old_secret: null, old_secret_until_ms: null })
    .where('old_secret_until_ms', '<', agedMs)
    .execute();
  await bringForward(db, nowMs);
}
