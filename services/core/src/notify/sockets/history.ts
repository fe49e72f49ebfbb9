import type { Kysely } from 'kysely';
import { listByConfirmation } from '../../state/lists/by-confirmation.ts';
import { listMessages } from '../../state/lists/messages.ts';
import type { MessageFilter } from '../../state/lists/properties.ts';
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

/**
 * The first messages of the list, its first one last, and the event up to which they stand: both as of one moment, so that what
 * comes after the event is what the messages lack. Throws LIST_TOO_COSTLY, and what `hold` throws.
 */
export const readHistory = (
  db: Kysely<Schema>,
  filter: MessageFilter,
  { count: limit, sortBy, oldestFirst }: Past,
  form: Form,
  hold: Hold,
): Promise<History> =>
  db
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute(async (trx) => {
      const { last_seq: seq } = await trx
        .selectFrom('event_counter')
        .select('last_seq')
        .executeTakeFirstOrThrow();
      if (limit === 0) return { seq, frames: [] };
      const list = sortBy === 'time' ? listMessages : listByConfirmation;
      const rows = await list(trx, filter, { limit, offset: 0, oldestFirst }, hold);
      const confirmations = await loadConfirmations(trx, rows);
      return { seq, frames: rows.reverse().map((row) => frameOf(row, confirmations, form)) };
    });
