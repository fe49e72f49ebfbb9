import type { DeliveryView, WebhookView } from '@skerry/protocol/api/core/webhooks';
import { type Kysely, sql } from 'kysely';
import { withTimeLimit } from '../../state/lists/time-limit.ts';
import type { AttemptNote, DeliveryState, Schema } from '../../store/schema.ts';
import { eventIdOf } from './event-id.ts';

/** A webhook as its owner sees it: everything but the secret. */
export type WebhookRow = Omit<WebhookView, 'created_at'> & {
  readonly number: number;
  readonly created: number;
};

/** Never the secrets. */
const COLUMNS = [
  'number',
  'webhook_id',
  'owner',
  'url',
  'events',
  'filters',
  'concurrency',
  'status',
  'reason',
  'created',
  'updated_ms',
  'failing_since_ms',
  'delivered_ms',
  'old_secret_until_ms',
] as const;

export function webhookView({ number: _number, created, ...row }: WebhookRow): WebhookView {
  return { ...row, created_at: Math.floor(created) };
}

export async function loadWebhook(db: Kysely<Schema>, webhookId: string): Promise<WebhookRow | undefined> {
  return db
    .selectFrom('webhooks')
    .select(COLUMNS)
    .where('webhook_id', '=', webhookId)
    .where('status', '<>', 'deleted')
    .$narrowType<{ status: WebhookRow['status'] }>()
    .executeTakeFirst();
}

/** Newest first. */
export async function listWebhooks(
  db: Kysely<Schema>,
  owner: string,
  { limit, before }: { readonly limit: number; readonly before: number | undefined },
): Promise<WebhookRow[]> {
  return db
    .selectFrom('webhooks')
    .select(COLUMNS)
    .where('owner', '=', owner)
    .where('status', '<>', 'deleted')
    .$if(before !== undefined, (query) => query.where('number', '<', before!))
    .orderBy('number', 'desc')
    .limit(limit)
    .$narrowType<{ status: WebhookRow['status'] }>()
    .execute();
}

interface DeliveryRow {
  seq: number;
  event: string;
  state: DeliveryState;
  attempts: number;
  due_ms: number;
  planned_ms: number;
  settled_ms: number | null;
  log: AttemptNote[];
  time_ms: number | null;
}

const deliveryView = ({ webhook_id }: WebhookRow, row: DeliveryRow): DeliveryView => ({
  event_id: eventIdOf(webhook_id, row.seq, row.time_ms ?? row.planned_ms),
  event: row.event,
  cursor: row.seq < 0 ? null : String(row.seq),
  state: row.state,
  attempts: row.attempts,
  planned_ms: row.planned_ms,
  next_attempt_ms: row.state === 'waiting' ? row.due_ms : null,
  settled_ms: row.settled_ms,
  log: row.log,
});

const selectDeliveries = (number: number) => sql`
  select d.seq, d.event, d.state, d.attempts, d.due_ms, d.planned_ms, d.settled_ms, d.log, e.time_ms
  from webhook_deliveries d left join events e on e.seq = d.seq where d.webhook = ${number}`;

/** Latest event first; tests come last. Throws LIST_TOO_COSTLY. */
export async function listDeliveries(
  db: Kysely<Schema>,
  row: WebhookRow,
  page: {
    readonly state: DeliveryState | undefined;
    readonly limit: number;
    readonly before: number | undefined;
  },
): Promise<{ items: DeliveryView[]; next: number | null }> {
  const { state, limit, before } = page;
  const deliveries = sql<DeliveryRow>`
    ${selectDeliveries(row.number)}
      ${state === undefined ? sql`` : sql`and d.state = ${state}`}
      ${before === undefined ? sql`` : sql`and d.seq < ${before}`}
    order by d.seq desc limit ${limit}`;
  // No index has the states of what is settled.
  const { rows } =
    state === undefined
      ? await deliveries.execute(db)
      : await withTimeLimit(db, (on) => deliveries.execute(on));
  return {
    items: rows.map((one) => deliveryView(row, one)),
    next: rows.length < limit ? null : rows.at(-1)!.seq,
  };
}

export async function findDelivery(
  db: Kysely<Schema>,
  row: WebhookRow,
  seq: number,
): Promise<DeliveryView | undefined> {
  const { rows } = await sql<DeliveryRow>`${selectDeliveries(row.number)} and d.seq = ${seq}`.execute(db);
  return rows[0] && deliveryView(row, rows[0]);
}
