import type { WebhookFilters } from '@skerry/protocol';
import { type Kysely, sql, type Transaction } from 'kysely';
import type { Schema, WebhookStatus } from '../../store/schema.ts';
import { LINEAGE } from '../../store/write-lock.ts';
import { openOften, type SealedBox } from './sealed-box.ts';
import { type FindSubscribers, indexSubscribers } from './subscriptions.ts';

/** A webhook, as planning and delivering know it. */
export interface Endpoint {
  readonly number: number;
  readonly webhookId: string;
  readonly url: URL;
  readonly events: readonly string[];
  readonly filters: WebhookFilters;
  /** Deliveries at once by this process: its part of what the webhook allows, and one at least. */
  readonly concurrency: number;
  readonly status: WebhookStatus;
  readonly behindSeq: number | null;
  readonly failingSinceMs: number | null;
  readonly holdUntilMs: number;
  /** What a delivery at this time is signed with: the secret, and during a rotation the one before. */
  secrets(nowMs: number): string[];
}

interface Row {
  number: number;
  webhook_id: string;
  url: string;
  events: string[];
  filters: WebhookFilters;
  concurrency: number;
  status: WebhookStatus;
  behind_seq: number | null;
  failing_since_ms: number | null;
  hold_until_ms: number;
  secret: Buffer;
  old_secret: Buffer | null;
  old_secret_until_ms: number | null;
}

function endpointOf(row: Row, open: SealedBox['open'], deliverers: () => number): Endpoint {
  return {
    number: row.number,
    webhookId: row.webhook_id,
    url: new URL(row.url),
    events: row.events,
    filters: row.filters,
    get concurrency() {
      return Math.max(1, Math.floor(row.concurrency / Math.max(1, deliverers())));
    },
    status: row.status,
    behindSeq: row.behind_seq,
    failingSinceMs: row.failing_since_ms,
    holdUntilMs: row.hold_until_ms,
    // Opened when it is used: memory holds no secret for long.
    secrets: (nowMs) => {
      const isRotating = row.old_secret !== null && (row.old_secret_until_ms ?? 0) > nowMs;
      return [row.secret, ...(isRotating ? [row.old_secret!] : [])].map((sealed) =>
        open(sealed, row.webhook_id),
      );
    },
  };
}

/** The webhooks of this node in memory. Rows that changed carry a greater version, so that only they are read again. */
export class EndpointBook {
  readonly #open: SealedBox['open'];
  readonly #deliverers: () => number;
  readonly #endpoints = new Map<number, Endpoint>();
  #version = -1;
  #timeline: string | undefined;
  #find: FindSubscribers = () => [];
  #liveCount = 0;
  #hasBehind = false;

  constructor(box: SealedBox, deliverers: () => number = () => 1) {
    this.#open = openOften(box);
    this.#deliverers = deliverers;
  }

  /** Whether it says what the database does. */
  isCurrent({ version, timeline }: Pick<PlannerRow, 'version' | 'timeline'>): boolean {
    return version === this.#version && timeline === this.#timeline;
  }

  /** Webhooks that events are planned for as they come. */
  get liveCount(): number {
    return this.#liveCount;
  }

  /** Whether some are new, were paused or were full. */
  get hasBehind(): boolean {
    return this.#hasBehind;
  }

  find(number: number): Endpoint | undefined {
    return this.#endpoints.get(number);
  }

  /** The live webhooks that an event is for. */
  readonly subscribersOf: FindSubscribers = (event, traits) => this.#find(event, traits);

  /**
   * @param planner as the caller read it. On another timeline of the database versions and numbers may have been given again, to others:
   * all is read anew
   */
  async refresh(
    db: Kysely<Schema>,
    { version, timeline }: Pick<PlannerRow, 'version' | 'timeline'>,
  ): Promise<void> {
    if (timeline !== this.#timeline) {
      this.#endpoints.clear();
      this.#version = -1;
      this.#timeline = timeline;
    }
    if (version === this.#version) return;
    const isFirst = this.#version < 0;
    const { rows } = await sql<Row>`
      select number, webhook_id, url, events, filters, concurrency, status, behind_seq, failing_since_ms, hold_until_ms,
        secret, old_secret, old_secret_until_ms
      from webhooks where version > ${this.#version} ${isFirst ? sql`and status <> 'deleted'` : sql``}`.execute(
      db,
    );
    for (const row of rows) {
      if (row.status === 'deleted') this.#endpoints.delete(row.number);
      else this.#endpoints.set(row.number, endpointOf(row, this.#open, this.#deliverers));
    }
    const active = [...this.#endpoints.values()].filter(({ status }) => status === 'active');
    const live = active.filter(({ behindSeq }) => behindSeq === null);
    this.#hasBehind = live.length < active.length;
    this.#find = indexSubscribers(live.map((one) => ({ ...one, webhook: one.number })));
    this.#liveCount = live.length;
    this.#version = version;
  }
}

export interface PlannerRow {
  readonly last_seq: number;
  readonly version: number;
  /** Of the database. */
  readonly timeline: string;
}

/** Holds planning, and every change of a webhook, until the transaction ends. */
export async function lockPlanner(trx: Transaction<Schema>): Promise<PlannerRow> {
  return trx
    .selectFrom('webhook_planner')
    .select(['last_seq', 'version', sql<string>`${sql.raw(LINEAGE)}`.as('timeline')])
    .forUpdate()
    .executeTakeFirstOrThrow();
}

/** The version that rows which are changed now carry. The caller holds the lock, or takes it by this. */
export async function raiseVersion(trx: Transaction<Schema>): Promise<number> {
  const row = await trx
    .updateTable('webhook_planner')
    .set((eb) => ({ version: eb('version', '+', 1) }))
    .returning('version')
    .executeTakeFirstOrThrow();
  return row.version;
}
