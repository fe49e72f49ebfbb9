import { AppError } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import { loadAffordance } from '../state/credits/afford.ts';
import { findMessage, listForgetting } from '../state/messages/find.ts';
import type { Schema } from '../store/schema.ts';
import { type Accepted, PROCESSED, type Verdict } from './accepted.ts';
import { decideMessage } from './pipeline/decide.ts';
import { loadFacts, wishesOf } from './pipeline/load-facts.ts';

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

/**
 * What will become of a message whose file is here, before anything of that is kept: nobody would pay for what stays of a file whose
 * message is refused. A message that is known, as one that waits for its file, is judged by its own date.
 */
export async function foresee(db: Kysely<Schema>, accepted: Accepted, nowMs: number): Promise<Verdict> {
  const { itemHash, sender } = accepted.message;
  const row = await findMessage(db, itemHash);
  const known = row?.sender === sender ? row : undefined;
  if (known?.status === 'processed') return PROCESSED;
  const notedMs = known ? (known.noted_ms ?? undefined) : nowMs;
  const dated = { ...accepted, message: { ...accepted.message, notedMs } };
  const forgottenBy = new Map([[itemHash, await listForgetting(db, itemHash)]]);
  return decideMessage(dated, await loadFacts(db, [dated], forgottenBy));
}
