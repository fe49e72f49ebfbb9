import { storableJson } from '@skerry/database';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { AttemptNote, DeliveryState, Schema, VerdictReason } from '../../../store/schema.ts';
import type { Body } from './bodies.ts';

/** Attempts that the log of a delivery keeps: a whole schedule, and a replay's. */
export const NOTES_MAX = 20;

/** The log of a delivery with one note more; where it is full, without its oldest. */
const noted = (log: RawBuilder<unknown>, note: RawBuilder<unknown>) => sql`
  case when jsonb_array_length(${log}) < ${NOTES_MAX} then ${log} else ${log} - 0 end || ${note}`;

/** A delivery that this process may attempt until `leaseEndMs`. */
export interface Claimed {
  readonly webhook: number;
  readonly seq: number;
  readonly attempts: number;
  readonly plannedMs: number;
  readonly leaseEndMs: number;
  /** undefined: the event is not in the log any more. */
  body?: Body | undefined;
}

export interface Want {
  readonly webhook: number;
  readonly limit: number;
}

/**
 * Takes due deliveries, in order, for as long as a lease: who dies with them loses nothing, since they are due again at
 * its end. Two processes never take the same one at the same time.
 */
export async function claimDeliveries(
  db: Kysely<Schema>,
  wants: readonly Want[],
  nowMs: number,
  leaseMs: number,
): Promise<Claimed[]> {
  if (wants.length === 0) return [];
  const leaseEndMs = nowMs + leaseMs;
  const { rows } = await sql<{ webhook: number; seq: number; attempts: number; planned_ms: number }>`
    with picked as (
      select d.webhook, d.seq, d.due_ms
      from unnest(${wants.map((one) => one.webhook)}::int[], ${wants.map((one) => one.limit)}::int[]) as w (webhook, n)
      cross join lateral (
        select webhook, seq, due_ms from webhook_deliveries
        where webhook = w.webhook and state = 'waiting' and due_ms <= ${nowMs}
        order by due_ms, seq limit w.n for update skip locked) d
    ), taken as (
      update webhook_deliveries d set due_ms = ${leaseEndMs}
      from picked where d.webhook = picked.webhook and d.seq = picked.seq
      returning d.webhook, d.seq, d.attempts, d.planned_ms, picked.due_ms
    )
    select webhook, seq, attempts, planned_ms from taken order by due_ms, seq`.execute(db);
  return rows.map(({ planned_ms, ...row }) => ({ ...row, plannedMs: planned_ms, leaseEndMs }));
}

/** What was claimed and not attempted is due again at once, before what was planned after it. */
export async function giveBackDeliveries(
  db: Kysely<Schema>,
  claimed: readonly Claimed[],
  nowMs: number,
): Promise<void> {
  if (claimed.length === 0) return;
  await sql`
    update webhook_deliveries d set due_ms = least(d.planned_ms, ${nowMs}::bigint)
    from unnest(
      ${claimed.map((one) => one.webhook)}::int[], ${claimed.map((one) => one.seq)}::bigint[],
      ${claimed.map((one) => one.leaseEndMs)}::bigint[]
    ) as r (webhook, seq, lease_end_ms)
    where d.webhook = r.webhook and d.seq = r.seq and d.state = 'waiting' and d.due_ms = r.lease_end_ms`.execute(
    db,
  );
}

/** What a replay makes of a row of `webhook_deliveries`: due at once, with all attempts before it. What is due keeps its place. */
export const dueAgain = (nowMs: number) => sql`
  state = 'waiting', attempts = 0, settled_ms = null,
  due_ms = case webhook_deliveries.state when 'waiting' then least(webhook_deliveries.due_ms, ${nowMs}::bigint)
    else ${nowMs}::bigint end`;

/**
 * Which rows a replay changes: what ended, and what waits for a retry. What waits for its first attempt is due or under way already: thus
 * replays, however many, bring one attempt until it has failed again.
 */
export const CAN_BE_DUE_AGAIN = sql`(webhook_deliveries.state <> 'waiting' or webhook_deliveries.attempts > 0)`;

/** Webhooks that have something due, by one step of the index for each. */
export async function findDueWebhooks(db: Kysely<Schema>, nowMs: number): Promise<number[]> {
  const { rows } = await sql<{ webhook: number }>`
    with recursive first as (
      (select webhook, due_ms from webhook_deliveries where state = 'waiting' order by webhook, due_ms limit 1)
      union all
      select n.webhook, n.due_ms from first cross join lateral (
        select webhook, due_ms from webhook_deliveries
        where state = 'waiting' and webhook > first.webhook order by webhook, due_ms limit 1) n
    )
    select webhook from first where due_ms <= ${nowMs}`.execute(db);
  return rows.map((row) => row.webhook);
}

/** Webhooks with more waiting deliveries than `max`. */
export async function findFullWebhooks(db: Kysely<Schema>, max: number): Promise<Set<number>> {
  const { rows } = await sql<{ webhook: number }>`
    select webhook from webhook_deliveries where state = 'waiting' group by webhook having count(*) > ${max}`.execute(
    db,
  );
  return new Set(rows.map((row) => row.webhook));
}

/** What became of an attempt, to be written. */
export interface Settled {
  readonly webhook: number;
  readonly seq: number;
  /** Of the claim under which it was attempted. */
  readonly leaseEndMs: number;
  readonly state: DeliveryState;
  /** When it is due again, where it waits. */
  readonly dueMs: number;
  readonly note: AttemptNote;
}

/**
 * A failure decides about a delivery while its claim stands. One that was made due again meanwhile, by a replay, or by its lease's end
 * and another claim, only notes it.
 */
const DECIDES = sql`(r.state = 'delivered' or d.due_ms = r.lease_end_ms)`;

export async function settleDeliveries(
  db: Kysely<Schema>,
  settled: readonly Settled[],
  nowMs: number,
): Promise<void> {
  await sql`
    update webhook_deliveries d set
      state = case when ${DECIDES} then r.state else d.state end,
      attempts = d.attempts + case when ${DECIDES} then 1 else 0 end,
      due_ms = case when ${DECIDES} then r.due_ms else d.due_ms end,
      settled_ms = case when ${DECIDES} and r.state <> 'waiting' then ${nowMs}::bigint end,
      log = ${noted(sql`d.log`, sql`r.note`)}
    from unnest(
      ${settled.map((one) => one.webhook)}::int[], ${settled.map((one) => one.seq)}::bigint[],
      ${settled.map((one) => one.leaseEndMs)}::bigint[],
      ${settled.map((one) => one.state)}::text[], ${settled.map((one) => one.dueMs)}::bigint[],
      ${settled.map((one) => storableJson(one.note))}::jsonb[]
    ) as r (webhook, seq, lease_end_ms, state, due_ms, note)
    where d.webhook = r.webhook and d.seq = r.seq and d.state = 'waiting'`.execute(db);
}

/**
 * Nothing waits for ever: what will not be tried is dead, with the reason.
 * @param which of the rows
 */
export async function killDeliveries(
  db: Kysely<Schema>,
  which: RawBuilder<boolean>,
  reason: VerdictReason,
  nowMs: number,
): Promise<void> {
  const note = JSON.stringify({ at_ms: nowMs, duration_ms: 0, status: null, ...reason });
  await sql`
    update webhook_deliveries set state = 'dead', settled_ms = ${nowMs}, log = ${noted(sql`log`, sql`${note}::jsonb`)}
    where ${which}`.execute(db);
}

/**
 * An endpoint that took something fails no longer, whichever process knew that it did. Not in one statement with its deliveries: who
 * changes a webhook locks it before them.
 */
export async function endFailures(db: Kysely<Schema>, webhooks: readonly number[]): Promise<void> {
  await sql`
    update webhooks set failing_since_ms = null, hold_until_ms = 0
    where number = any(${webhooks}::int[]) and status = 'active' and failing_since_ms is not null`.execute(
    db,
  );
}

/** What endpoints went through, for their owners and for the next start. */
export interface EndpointNote {
  readonly webhook: number;
  /** When the last attempt failed; null: it was a success. It fails since then at the latest: another process may have seen it before. */
  readonly failedMs: number | null;
  /** null: nobody asked for a pause since. */
  readonly holdUntilMs: number | null;
  /** The last success, where there was one now. */
  readonly deliveredMs: number | null;
}

export async function noteEndpoints(db: Kysely<Schema>, notes: readonly EndpointNote[]): Promise<void> {
  await sql`
    update webhooks w set
      failing_since_ms = case when r.failed_ms is not null then coalesce(w.failing_since_ms, r.failed_ms) end,
      hold_until_ms = case when r.failed_ms is null then 0 else coalesce(r.hold_until_ms, w.hold_until_ms) end,
      delivered_ms = coalesce(r.delivered_ms, w.delivered_ms)
    from unnest(
      ${notes.map((one) => one.webhook)}::int[], ${notes.map((one) => one.failedMs)}::bigint[],
      ${notes.map((one) => one.holdUntilMs)}::bigint[], ${notes.map((one) => one.deliveredMs)}::bigint[]
    ) as r (number, failed_ms, hold_until_ms, delivered_ms)
    where w.number = r.number`.execute(db);
}
