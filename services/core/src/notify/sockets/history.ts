import type { Kysely } from 'kysely';
import { listMessages } from '../../state/lists/messages.ts';
import type { MessageFilter } from '../../state/lists/properties.ts';
import { loadConfirmations } from '../../state/messages/confirmations.ts';
import type { Schema } from '../../store/schema.ts';
import { type Form, frameOf } from './form.ts';
import type { History } from './reader.ts';

/**
 * The last messages that fit, the oldest first, and the event up to which they stand: both as of one moment, so that what
 * comes after the event is what the messages lack. Throws LIST_TOO_COSTLY.
 */
export const readHistory = (
  db: Kysely<Schema>,
  filter: MessageFilter,
  limit: number,
  form: Form,
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
      const rows = await listMessages(trx, filter, { limit, offset: 0 });
      const confirmations = await loadConfirmations(trx, rows);
      return { seq, frames: rows.reverse().map((row) => frameOf(row, confirmations, form)) };
    });
