import { AppError, effectiveTime, LIMITS } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import { loadAffordance } from '../state/credits/afford.ts';
import { findMessage, listForgetting } from '../state/messages/find.ts';
import type { Schema } from '../store/schema.ts';
import { acceptMessage } from './accept.ts';
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
 * The same message of whose file nothing was kept: refused for want of credit where the facts of its batch say so, and as it would be
 * without this file where they do not any more.
 */
export function withoutFile(accepted: Accepted): Accepted {
  const { decide } = acceptMessage(accepted.message);
  return {
    ...accepted,
    isLeftIfRefused: true,
    // What is in force but for its credit is refused for want of it (decide.ts).
    decide: (facts, message) =>
      facts.shortageOf(message.itemHash) === undefined ? decide(facts, message) : PROCESSED,
  };
}

/**
 * Why an owner has not the credit for a file beside all that is theirs, and beside what is being kept for them; undefined where there is
 * enough. A message counts before those that are dated later: judged by its date alone each of many files, sent from the last date to
 * the first, would be taken in the place of the one before it, which stays for the grace period. Credit and prices that are dated later
 * count from their time on, as where the message is decided.
 */
async function findShortage(
  db: Kysely<Schema>,
  accepted: Accepted,
  earlier: readonly Accepted[],
  nowMs: number,
): Promise<string | undefined> {
  const { message } = accepted;
  const { itemHash: own } = message;
  const others = new Map(earlier.map((one) => [one.message.itemHash, one]));
  others.delete(own);
  const { wishes, sizes } = wishesOf([...others.values(), accepted]);
  // No message is dated later.
  const last = nowMs / 1000 + LIMITS.futureSeconds;
  const dated = wishes.map((wish) => ({ ...wish, time: wish.itemHash === own ? last + 1 : last }));
  const asOf = Math.max(effectiveTime(message), Math.floor(nowMs / 1000));
  const affordance = await loadAffordance(db, dated, sizes, asOf);
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

/** What one statement says of a message, as all that most uploads need. */
async function lookAt(db: Kysely<Schema>, itemHash: string) {
  const { rows } = await sql<{ is_enforced: boolean; is_there: boolean; is_forgotten: boolean }>`
    select exists (select from credit_derivation where enforcement) as is_enforced,
      exists (select from messages where item_hash = ${itemHash}) as is_there,
      exists (select from forgets where target = ${itemHash}) as is_forgotten`.execute(db);
  return rows[0]!;
}

/** What will become of a message, as far as can be said now. */
export interface Foreseen {
  readonly verdict: Verdict;
  /** Its sender's message is kept already. */
  readonly isKnown: boolean;
}

/** @returns undefined where it hangs on what is being kept for the same owner */
async function judge(
  db: Kysely<Schema>,
  accepted: Accepted,
  earlier: readonly Accepted[],
  nowMs: number,
): Promise<Foreseen | undefined> {
  const { owner, message } = accepted;
  const { itemHash, sender } = message;
  const look = await lookAt(db, itemHash);
  const row = look.is_there ? await findMessage(db, itemHash) : undefined;
  const known = row?.sender === sender ? row : undefined;
  const processed = { verdict: PROCESSED, isKnown: known !== undefined };
  if (known?.status === 'processed') return processed;
  const dated = datedBy(accepted, known, nowMs);
  const isOfNow = effectiveTime(dated.message) >= Math.floor(nowMs / 1000);
  // Nothing stands in its way but credit, whatever the dates.
  const isPlain = !row && !look.is_forgotten && sender === owner && (isOfNow || !look.is_enforced);
  if (!isPlain) {
    const forgottenBy = new Map([[itemHash, await listForgetting(db, itemHash)]]);
    const verdict = decideMessage(dated, await loadFacts(db, [dated], forgottenBy));
    if (verdict.status !== 'processed') return { ...processed, verdict };
  }
  if (!look.is_enforced) return processed;
  if (known) return earlier.length === 0 ? processed : undefined;
  const shortage = await findShortage(db, accepted, earlier, nowMs);
  if (shortage === undefined) return processed;
  return earlier.length === 0
    ? { ...processed, verdict: rejected('CREDIT_INSUFFICIENT', shortage) }
    : undefined;
}

/**
 * What will become of a message whose file is still to come, and is kept as it comes. Other files that come for the same owner play no
 * part: each is refused only for what is in force.
 * @param file how many bytes it has at least
 */
export const foreseeComing = (
  db: Kysely<Schema>,
  accepted: Accepted,
  file: UploadedFile,
  now: () => number,
): Promise<Foreseen> => foresee(db, withFile(accepted, file), { earlier: () => [] }, now);

/**
 * What will become of a message whose file is here, before anything of that is kept: nobody would pay for what stays of a file whose
 * message is refused. A message that is known, as one that waits for its file, is judged by its own date. What there is no credit for
 * beside the files of the same owner that are being kept waits until those have their verdicts. What it says of credit is this node's
 * own word, whatever the dates, and no verdict of the network: that is for the batch to find.
 * @param accepted brings its file
 */
export async function foresee(
  db: Kysely<Schema>,
  accepted: Accepted,
  { earlier }: Pick<Turn, 'earlier'>,
  now: () => number,
): Promise<Foreseen> {
  // Twice at most: none joins those that are earlier.
  for (;;) {
    const before = earlier();
    const foreseen = await judge(
      db,
      accepted,
      before.map((one) => one.accepted),
      now(),
    );
    if (foreseen) return foreseen;
    await Promise.all(before.map((one) => one.ended));
  }
}
