import { rowsFrom, type Writer } from '@skerry/database';
import type { NetworkEvent } from '@skerry/protocol';
import { type RawBuilder, sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';

type Draft<E> = E extends NetworkEvent ? Pick<E, Extract<keyof E, 'kind' | 'data' | 'cause'>> : never;
export type EventDraft = Readonly<Draft<NetworkEvent>>;

const causeOf = (event: EventDraft) => (event.kind === 'instance' ? (event.cause ?? null) : null);

/** Says that events up to this number are given. */
export const numberEvents = (lastSeq: number): RawBuilder<unknown> =>
  sql`update event_counter set last_seq = ${lastSeq}::bigint`;

/**
 * Writes the events of a transaction as they become known, each with the next number: the server takes them behind the rows that it
 * is busy with. `numberEvents` comes after the last of them. The caller holds the lock.
 */
export class EventWriter {
  readonly #writer: Writer<Schema>;
  readonly #nowMs: number;
  #lastSeq: number;

  constructor(writer: Writer<Schema>, lastSeq: number, nowMs: number) {
    this.#writer = writer;
    this.#lastSeq = lastSeq;
    this.#nowMs = nowMs;
  }

  /** The number of the last event so far. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  write(events: readonly EventDraft[]): void {
    if (events.length === 0) return;
    const first = this.#lastSeq + 1;
    const rowOf = (event: EventDraft, index: number) => [
      first + index,
      event.kind,
      JSON.stringify(event.data),
      this.#nowMs,
      causeOf(event),
    ];
    this.#writer.copy('events', ['seq', 'kind', 'data', 'time_ms', 'cause'], rowsFrom(events, rowOf));
    this.#lastSeq += events.length;
  }
}

/** Numbers the events from `lastSeq` on and writes them. The caller holds the lock. */
export async function appendEvents(
  writer: Writer<Schema>,
  lastSeq: number,
  events: readonly EventDraft[],
  nowMs: number,
): Promise<void> {
  if (events.length === 0) return;
  const written = new EventWriter(writer, lastSeq, nowMs);
  written.write(events);
  await numberEvents(written.lastSeq).execute(writer.trx);
}
