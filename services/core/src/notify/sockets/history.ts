import type { Kysely } from 'kysely';
import { listByConfirmation } from '../../state/lists/by-confirmation.ts';
import { listMessages } from '../../state/lists/messages.ts';
import type { MessageFilter } from '../../state/lists/properties.ts';
import { withTimeLimit } from '../../state/lists/time-limit.ts';
import type { Hold } from '../../state/lists/weight.ts';
import { loadConfirmations } from '../../state/messages/confirmations.ts';
import type { Schema } from '../../store/schema.ts';
import { type Form, frameOf } from './form.ts';
import type { History } from './reader.ts';

/** Which messages from before are wanted. */
export interface Past {
  readonly count: number;
  readonly sortBy: 'time' | 'tx-time';
  readonly oldestFirst: boolean;
}

/** The number of the last event. */
async function readLast(db: Kysely<Schema>): Promise<number> {
  const { last_seq } = await db.selectFrom('event_counter').select('last_seq').executeTakeFirstOrThrow();
  return last_seq;
}

/**
 * The first messages of the list, its first one last, and the event up to which they stand: both as of one moment, so that what
 * comes after the event is what the messages lack. Throws LIST_TOO_COSTLY, and what `hold` and the turns of
 * whoever asks throw.
 */
export const readHistory = async (
  db: Kysely<Schema>,
  filter: MessageFilter,
  { count: limit, sortBy, oldestFirst }: Past,
  form: Form,
  hold: Hold,
): Promise<History> => {
  if (limit === 0) return { seq: await readLast(db), frames: [] };
  const read = async (on: Kysely<Schema>) => {
    const seq = await readLast(on);
    const list = sortBy === 'time' ? listMessages : listByConfirmation;
    const rows = await list(on, filter, { limit, offset: 0, oldestFirst }, hold);
    return { seq, rows, confirmations: await loadConfirmations(on, rows) };
  };
  const { seq, rows, confirmations } = await withTimeLimit(db, read, { isolation: 'repeatable read' });
  return { seq, frames: rows.reverse().map((row) => frameOf(row, confirmations, form)) };
};
