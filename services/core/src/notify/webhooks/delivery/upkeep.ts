import type { Logger } from '@skerry/kit';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../../store/schema.ts';
import { stopReason, stopWebhook } from '../stop.ts';
import { killDeliveries } from './deliveries.ts';
import { DUE_AHEAD_MAX_MS, PAUSE_AFTER_MS } from './schedule.ts';

const DAY_MS = 86_400_000;
/** A clock that is so much further at once was set, or the machine slept. */
const JUMP_MS = 5_000;
/** The least that it was ahead in as long, by the machine's uptime, is believed. */
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

/** What the next process goes on from. */
interface KeptAge {
  /** What was read last. */
  readonly agedMs: number;
  /** How long the clock had been ahead of it by then; 0 where it was not. */
  readonly aheadMs: number;
  /** The least that it was ahead in that time; 0 where it was not. */
  readonly leadMs: number;
}

/** The time by which ages are told: a clock that is ahead for some hours makes nothing old that cannot be had back. */
export class AgeClock {
  readonly #now: () => number;
  readonly #uptime: () => number;
  #base: number;
  #ahead: { readonly sinceMs: number; readonly base: number } | undefined;

  /**
   * @param uptime milliseconds since whenever; never set
   * @param kept by the process before: what the clock went on meanwhile is ahead at first
   */
  constructor(now: () => number, uptime: () => number = () => performance.now(), kept?: KeptAge) {
    this.#now = now;
    this.#uptime = uptime;
    const uptimeMs = uptime();
    this.#base = (kept?.agedMs ?? now()) - uptimeMs;
    if (kept && kept.leadMs > 0)
      this.#ahead = { sinceMs: uptimeMs - kept.aheadMs, base: this.#base + kept.leadMs };
  }

  /** Milliseconds since 1970. */
  look(): KeptAge {
    const uptimeMs = this.#uptime();
    const base = this.#now() - uptimeMs;
    if (this.#ahead) {
      const { sinceMs, base: least } = this.#ahead;
      this.#ahead = { sinceMs, base: Math.min(least, base) };
      if (uptimeMs - sinceMs >= BELIEVED_AFTER_MS) {
        this.#base = this.#ahead.base;
        this.#ahead = undefined;
      }
    }
    if (base > this.#base + JUMP_MS) this.#ahead ??= { sinceMs: uptimeMs, base };
    else {
      this.#base = base;
      this.#ahead = undefined;
    }
    const { sinceMs, base: least } = this.#ahead ?? { sinceMs: uptimeMs, base: this.#base };
    return {
      agedMs: Math.round(this.#base + uptimeMs),
      aheadMs: Math.round(uptimeMs - sinceMs),
      leadMs: Math.round(least - this.#base),
    };
  }
}

/** The clock of the process before, gone on with. */
async function openAgeClock(db: Kysely<Schema>, now: () => number, uptime?: () => number): Promise<AgeClock> {
  const row = await db.selectFrom('webhook_clock').selectAll().executeTakeFirst();
  const kept = row && { agedMs: row.aged_ms, aheadMs: row.ahead_ms, leadMs: row.lead_ms };
  return new AgeClock(now, uptime, kept);
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

interface UpkeepOptions {
  readonly db: Kysely<Schema>;
  readonly log: Logger;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds since whenever, never set; the process's own where left out. */
  readonly uptime?: () => number;
}

/** A round of upkeep, to be called again and again. */
export function createUpkeep({ db, log, now, uptime }: UpkeepOptions): () => Promise<void> {
  let clock: AgeClock | undefined;
  return async () => {
    clock ??= await openAgeClock(db, now, uptime);
    const { agedMs, aheadMs, leadMs } = clock.look();
    const kept = { aged_ms: agedMs, ahead_ms: aheadMs, lead_ms: leadMs };
    await db
      .insertInto('webhook_clock')
      .values(kept)
      .onConflict((conflict) => conflict.column('id').doUpdateSet(kept))
      .execute();
    await tidyWebhooks({ db, log }, now(), agedMs);
  };
}
