import type { Writer } from '@skerry/database';
import type { NetworkEvent } from '@skerry/protocol';
import type { Transaction } from 'kysely';
import type { Schema } from '../../store/schema.ts';

type Draft<E> = E extends NetworkEvent ? Pick<E, 'kind' | 'data'> : never;
export type EventDraft = Readonly<Draft<NetworkEvent>>;

/**
 * Takes the one row that numbers events, until the transaction ends, and gives the last number used. A plain sequence
 * would let a reader see number 8 while the transaction of number 7 is still open, and miss 7 for ever.
 */
export async function lockEvents(trx: Transaction<Schema>): Promise<number> {
  const row = await trx.selectFrom('event_counter').select('last_seq').forUpdate().executeTakeFirstOrThrow();
  return row.last_seq;
}

/** Numbers the events from `lastSeq` on and writes them. The caller holds the lock. */
export async function appendEvents(
  { trx, copy }: Writer<Schema>,
  lastSeq: number,
  events: readonly EventDraft[],
  nowMs: number,
): Promise<void> {
  await copy(
    'events',
    ['seq', 'kind', 'data', 'time_ms'],
    events.map((event, index) => [lastSeq + index + 1, event.kind, JSON.stringify(event.data), nowMs]),
  );
  await trx
    .updateTable('event_counter')
    .set({ last_seq: lastSeq + events.length })
    .execute();
}
