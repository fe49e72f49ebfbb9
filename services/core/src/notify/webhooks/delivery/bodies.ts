import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../../store/schema.ts';
import type { LoggedEvent } from '../topics/topic.ts';
import { renderBody } from '../topics/topics.ts';

/** The event before, of the same instance, where that matters. */
export async function addBefore(db: Kysely<Schema>, events: readonly LoggedEvent[]): Promise<LoggedEvent[]> {
  const seqs = events.filter(({ kind }) => kind === 'instance').map(({ seq }) => seq);
  if (seqs.length === 0) return [...events];
  const { rows } = await sql<{ seq: number; data: Record<string, unknown> }>`
    select e.seq, b.data from events e cross join lateral (
      select data from events
      where kind = 'instance' and data ->> 'instance_id' = e.data ->> 'instance_id' and seq < e.seq
      order by seq desc limit 1) b
    where e.seq = any(${seqs}::bigint[])`.execute(db);
  const before = new Map(rows.map((row) => [row.seq, row.data]));
  return events.map((event) =>
    event.kind === 'instance' ? { ...event, before: before.get(event.seq) ?? null } : event,
  );
}

/** Bodies that are kept in memory: an event often has many listeners. */
const BODIES_MAX = 2_000;

export interface Body {
  readonly text: string;
  /** Of the event, in milliseconds. */
  readonly timeMs: number;
}

/** undefined: nobody is told of events of this kind. */
export function bodyOf(event: LoggedEvent): Body | undefined {
  const text = renderBody(event);
  return text === undefined ? undefined : { text, timeMs: event.timeMs };
}

interface Bodiless {
  readonly seq: number;
  readonly plannedMs: number;
  body?: Body | undefined;
}

/** The body of a test (`webhook.test`), which is no event of the log. */
const testBody = (plannedMs: number): Body => ({
  text: JSON.stringify({ type: 'webhook.test', timestamp: new Date(plannedMs).toISOString(), data: {} }),
  timeMs: plannedMs,
});

/** Bodies of deliveries, made from the log when they are needed: rows keep none. */
export class Bodies {
  readonly #db: Kysely<Schema>;
  readonly #kept = new Map<number, Body>();

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** Gives each delivery its body. */
  async fill(claimed: readonly Bodiless[]): Promise<void> {
    await this.#load(claimed.map((one) => one.seq));
    for (const one of claimed) one.body = one.seq < 0 ? testBody(one.plannedMs) : this.#kept.get(one.seq);
    for (const seq of this.#kept.keys()) {
      if (this.#kept.size <= BODIES_MAX) return;
      this.#kept.delete(seq);
    }
  }

  async #load(seqs: readonly number[]): Promise<void> {
    const missing = [...new Set(seqs)].filter((seq) => seq >= 0 && !this.#kept.has(seq));
    if (missing.length === 0) return;
    const rows = await this.#db
      .selectFrom('events')
      .selectAll()
      .where('seq', '=', sql<number>`any(${missing}::bigint[])`)
      .execute();
    const events = rows.map(
      ({ seq, kind, data, time_ms }): LoggedEvent => ({
        seq,
        kind,
        data: data as LoggedEvent['data'],
        timeMs: time_ms,
      }),
    );
    for (const event of await addBefore(this.#db, events)) {
      const body = bodyOf(event);
      if (body) this.#kept.set(event.seq, body);
    }
  }
}
