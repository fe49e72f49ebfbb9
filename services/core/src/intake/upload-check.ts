import { AppError, LIMITS } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import { loadAffordance } from '../state/credits/afford.ts';
import { findMessage, listForgetting } from '../state/messages/find.ts';
import type { Schema } from '../store/schema.ts';
import { type Accepted, PROCESSED, rejected, type Verdict } from './accepted.ts';
import { fileEffect, type UploadedFile } from './effects/files.ts';
import { decideMessage } from './pipeline/decide.ts';
import { loadFacts, wishesOf } from './pipeline/load-facts.ts';
import type { StoredMessage } from './stored.ts';
import type { Turn } from './under-way.ts';

/** A message together with the file that it asked to keep, and that is here. */
export const withFile = (accepted: Accepted, file: UploadedFile): Accepted => ({
  ...accepted,
  changes: [fileEffect.change(file), ...accepted.changes],
  decide: () => PROCESSED,
});

/**
 * Why an owner has not the credit for a file beside all that is theirs, and beside what is being kept for them; undefined where there is
 * enough. A message counts before those that are dated later: judged by its date alone each of many files, sent from the last date to
 * the first, would be taken in the place of the one before it, which stays for the grace period.
 */
async function findShortage(
  db: Kysely<Schema>,
  accepted: Accepted,
  earlier: readonly Accepted[],
  nowMs: number,
): Promise<string | undefined> {
  const { itemHash: own } = accepted.message;
  const others = new Map(earlier.map((one) => [one.message.itemHash, one]));
  others.delete(own);
  const { wishes, sizes } = wishesOf([...others.values(), accepted]);
  // No message is dated later.
  const latest = nowMs / 1000 + LIMITS.futureSeconds;
  const dated = wishes.map((wish) => ({ ...wish, time: wish.itemHash === own ? latest + 1 : latest }));
  const affordance = await loadAffordance(db, dated, sizes);
  for (const itemHash of others.keys()) affordance.note(itemHash, true);
  return affordance.findShortage(own);
}

/**
 * Refuses an upload before anything of it is kept, where its owner has no credit for it now: nobody would pay for the room that it
 * takes until it is refused. One whose message is kept was judged by its own date. Throws CREDIT_INSUFFICIENT.
 * @param nowMs Unix milliseconds
 */
export async function checkUpload(db: Kysely<Schema>, accepted: Accepted, nowMs: number): Promise<void> {
  const shortage = await findShortage(db, accepted, [], nowMs);
  if (shortage !== undefined && !(await findMessage(db, accepted.message.itemHash)))
    throw new AppError('CREDIT_INSUFFICIENT', shortage);
}

/** As it is judged: a message that is known by its own date, which of an upload is its time, too. */
function datedBy(accepted: Accepted, known: StoredMessage | undefined, nowMs: number): Accepted {
  const { message } = accepted;
  if (!known) return { ...accepted, message: { ...message, notedMs: nowMs } };
  const { noted_ms: notedMs, time } = known;
  const dated = { ...message, notedMs: notedMs ?? undefined };
  return { ...accepted, message: message.form === 'upload' ? { ...dated, time } : dated };
}

/** @returns undefined where it hangs on what is being kept for the same owner */
async function judge(
  db: Kysely<Schema>,
  accepted: Accepted,
  earlier: readonly Accepted[],
  nowMs: number,
): Promise<Verdict | undefined> {
  const { itemHash, sender } = accepted.message;
  const row = await findMessage(db, itemHash);
  const known = row?.sender === sender ? row : undefined;
  if (known?.status === 'processed') return PROCESSED;
  const dated = datedBy(accepted, known, nowMs);
  const forgottenBy = new Map([[itemHash, await listForgetting(db, itemHash)]]);
  const facts = await loadFacts(db, [dated], forgottenBy);
  const verdict = decideMessage(dated, facts);
  if (verdict.status !== 'processed' || !facts.isCreditEnforced) return verdict;
  if (known) return earlier.length === 0 ? verdict : undefined;
  const shortage = await findShortage(db, accepted, earlier, nowMs);
  if (shortage === undefined) return verdict;
  return earlier.length === 0 ? rejected('CREDIT_INSUFFICIENT', shortage) : undefined;
}

/**
 * What will become of a message whose file is here, before anything of that is kept: nobody would pay for what stays of a file whose
 * message is refused. A message that is known, as one that waits for its file, is judged by its own date. What there is no credit for
 * beside the files of the same owner that are being kept waits until those have their verdicts.
 */
export async function foresee(
  db: Kysely<Schema>,
  accepted: Accepted,
  { earlier }: Pick<Turn, 'earlier'>,
  now: () => number,
): Promise<Verdict> {
  // As often as there are earlier ones, at most: none joins them.
  for (;;) {
    const before = earlier();
    const verdict = await judge(
      db,
      accepted,
      before.map((one) => one.accepted),
      now(),
    );
    if (verdict) return verdict;
    await before[0]?.ended;
  }
}
