import { AppError } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import { loadAffordance } from '../state/credits/afford.ts';
import { findMessage } from '../state/messages/find.ts';
import type { Schema } from '../store/schema.ts';
import type { Accepted } from './accepted.ts';
import { wishesOf } from './pipeline/load-facts.ts';

/**
 * Refuses an upload before anything of it is kept, where its owner has no credit for it now: nobody would pay for the room that it
 * takes until it is refused. One whose message is kept was judged by its own date. Throws CREDIT_INSUFFICIENT.
 */
export async function checkUpload(db: Kysely<Schema>, accepted: Accepted): Promise<void> {
  const { itemHash } = accepted.message;
  const { wishes, sizes } = wishesOf([accepted]);
  const { findShortage } = await loadAffordance(db, wishes, sizes);
  const shortage = findShortage(itemHash);
  if (shortage !== undefined && !(await findMessage(db, itemHash)))
    throw new AppError('CREDIT_INSUFFICIENT', shortage);
}
