import type { Writer } from '@skerry/database';
import type { NetworkEvent } from '@skerry/protocol';
import { sql, type Transaction } from 'kysely';
import type { Schema } from '../../store/schema.ts';

type Draft<E> = E extends NetworkEvent ? Pick<E, Extract<keyof E, 'kind' | 'data' | 'cause'>> : never;
export type EventDraft = Readonly<Draft<NetworkEvent>>;

/** All who write wait for whoever holds the lock: a process that is frozen with it loses it after this. */
const HOLD_IDLE_MS = 10_000;
const HOLD = sql`set_config('idle_in_transaction_session_timeout', ${sql.lit(String(HOLD_IDLE_MS))}, true)`;

/**
 * Takes the one row that numbers events, until the transaction ends, and gives the last number used. A plain sequence
 * would let a reader see number 8 while the transaction of number 7 is still open, and miss 7 for ever.
 */
export async function lockEvents(trx: Transaction<Schema>): Promise<number> {
  const row = await trx
    .selectFrom('event_counter')
    .select(['last_seq', HOLD.as('hold')])
    .forUpdate()
    .executeTakeFirstOrThrow();
  return row.last_seq;
}

const causeOf = (event: EventDraft) => (event.kind === 'instance' ? (event.cause ?? null) : null);

/** Numbers the events from `lastSeq` on and writes them. The caller holds the lock. */
export async function appendEvents(
  { trx, copy }: Writer<Schema>,
  lastSeq: number,
  events: readonly EventDraft[],
  nowMs: number,
): Promise<void> {
  await copy(
    'events',
    ['seq', 'kind', 'data', 'time_ms', 'cause'],
    events.map((event, index) => [
      lastSeq + index + 1,
      event.kind,
      JSON.stringify(event.data),
      nowMs,
      causeOf(event),
    ]),
  );
  await trx
    .updateTable('event_counter')
    .set({ last_seq: lastSeq + events.length })
    .execute();
}
