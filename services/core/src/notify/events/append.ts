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

/** Numbers the events from `lastSeq` on and writes them; `numberEvents` comes after it. The caller holds the lock. */
export function writeEvents(
  { copy }: Writer<Schema>,
  lastSeq: number,
  events: readonly EventDraft[],
  nowMs: number,
): void {
  if (events.length === 0) return;
  copy(
    'events',
    ['seq', 'kind', 'data', 'time_ms', 'cause'],
    rowsFrom(events, (event, index) => [
      lastSeq + index + 1,
      event.kind,
      JSON.stringify(event.data),
      nowMs,
      causeOf(event),
    ]),
  );
}

/** Numbers the events from `lastSeq` on and writes them. The caller holds the lock. */
export async function appendEvents(
  writer: Writer<Schema>,
  lastSeq: number,
  events: readonly EventDraft[],
  nowMs: number,
): Promise<void> {
  if (events.length === 0) return;
  writeEvents(writer, lastSeq, events, nowMs);
  await numberEvents(lastSeq + events.length).execute(writer.trx);
}
