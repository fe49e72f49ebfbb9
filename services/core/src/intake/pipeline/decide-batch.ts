import type { MessageStatus } from '@skerry/protocol';
import type { Transaction } from 'kysely';
import { isFileKey } from '../../store/dependency-keys.ts';
import type { Schema } from '../../store/schema.ts';
import type { Accepted, Facts, Verdict } from '../accepted.ts';
import { wentWithPost } from '../kinds/amend.ts';
import { decideMessage, dependenciesOf } from './decide.ts';
import type { Candidate, Decided } from './decided.ts';
import { loadFacts } from './load-facts.ts';
import { isGone, isOutsaid, type Kept, type Known } from './load-known.ts';
import { isWanted } from './statement.ts';

/** The node's patience: what still lacks something at the end of its time is rejected. */
const inTime = (verdict: Verdict, decideByMs: number, nowMs: number): Verdict =>
  verdict.status === 'pending' && nowMs >= decideByMs ? { ...verdict, status: 'rejected' } : verdict;

const settled: readonly MessageStatus[] = ['processed', 'forgotten'];

/**
 * The network form's item hash does not cover the sender, so strangers can sign a copy of somebody's message. A copy
 * neither disturbs the one that is in force nor stands in its way: only a better verdict takes the place of a worse one. Of two that
 * hold the earlier one does (restate.ts).
 */
function decideCopy(
  before: Known,
  own: Verdict,
  { isSkeleton = false }: Accepted,
): { verdict: Verdict; before: MessageStatus } {
  // Nobody signed a skeleton, so it may be of another sender than the message is.
  const isWord = before.status === 'forgotten' && !before.isRead;
  const isProven = isWord && !isSkeleton && settled.includes(own.status);
  if (settled.includes(before.status) && !isProven)
    return { verdict: { status: before.status, reason: null }, before: before.status };
  if (before.status === 'pending' && own.status === 'pending') return { verdict: TAKEN, before: 'rejected' };
  const isBetter = settled.includes(own.status) || before.status === 'rejected';
  return { verdict: own, before: isBetter ? before.status : own.status };
}

/** Nobody can say yet which of two is right, and one is kept. The other is not acknowledged, so that its sender tries again. */
const TAKEN: Verdict = {
  status: 'rejected',
  reason: {
    code: 'CONTENT_NOT_FOUND',
    message:
      'a copy by another sender waits for what this message lacks; send that first, then this message again',
  },
};

/** The tags of an upload are no part of what was signed: those that it has stay. */
function tagsBeforeOf(
  { message, tags }: Accepted,
  before: Known,
  verdict: Verdict,
): readonly string[] | null {
  const isListed = before.status === 'processed' && verdict.status === 'processed';
  const { tags: kept } = before.fields;
  const isSame = kept.length === tags.length && kept.every((tag, index) => tag === tags[index]);
  return isListed && message.form !== 'upload' && !isSame ? kept : null;
}

/** What is kept stays as it is. */
const unchanged = (accepted: Accepted, before: Known): Decided => ({
  accepted,
  verdict: { status: before.status, reason: null },
  before: before.status,
  keyBefore: before.key,
  isRedated: false,
  erased: before.erased,
  isWantedAnew: false,
  tagsBefore: null,
  shape: before.shape,
  decideByMs: before.decideByMs,
  dependencies: [],
});

/** What becomes of a message, and what it was: one that is left where it is refused changes nothing then. */
function stepOf(accepted: Accepted, own: Verdict, before: Known | undefined) {
  if (before && before.sender !== accepted.message.sender) return decideCopy(before, own, accepted);
  const isLeft = !before && accepted.isLeftIfRefused && own.status === 'rejected';
  return { verdict: own, before: isLeft ? own.status : (before?.status ?? null) };
}

/**
 * Of a message whose text is erased, whether that is as it should be: a FORGET in force names it, or the post that it amended is forgotten.
 * Where neither is so, by what this node knows, others may have the text.
 */
function erasureOf(accepted: Accepted, facts: Facts): Decided['erased'] {
  const { message, isSkeleton = false } = accepted;
  if (!isSkeleton) return null;
  const isNamed = facts.forgottenBy(message.itemHash).length > 0;
  return isNamed || wentWithPost(accepted, facts) ? 'forgotten' : 'wanted';
}

/** Decides the batch one message after another, each seeing what those before it changed. */
export async function decideBatch(
  trx: Transaction<Schema>,
  batch: readonly Candidate[],
  { known, forgottenBy }: Kept,
  nowMs: number,
): Promise<Decided[]> {
  const accepted = batch.map((one) => one.accepted);
  const facts = await loadFacts(trx, accepted, forgottenBy);
  const decided = new Map<string, Decided>();
  for (const { accepted, decideByMs, isRedated = false } of batch) {
    const hash = accepted.message.itemHash;
    if (decided.has(hash)) continue;
    const before = known.get(hash);
    const byFacts = decideMessage(accepted, facts);
    const deadline = before && !isGone(before) ? before.decideByMs : decideByMs;
    const own = inTime(byFacts, deadline, nowMs);
    if (before && isOutsaid(accepted, before)) {
      decided.set(hash, unchanged(accepted, before));
      continue;
    }
    const isCopy = before !== undefined && before.sender !== accepted.message.sender;
    const step = stepOf(accepted, own, before);
    // Neither a copy that changes nothing nor a message that is left is there for those that come after it.
    const isNoted = step.before !== step.verdict.status || (before !== undefined && !isCopy);
    if (isNoted) facts.note(accepted, byFacts);
    const erased = before && !isNoted ? before.erased : erasureOf(accepted, facts);
    // A file that was there once stays known, and none is asked for of what is forgotten.
    const needsFiles = step.verdict.status !== 'processed' && erased !== 'forgotten';
    const all = dependenciesOf(accepted, facts);
    const dependencies = needsFiles || all.length === 0 ? all : all.filter((key) => !isFileKey(key));
    decided.set(hash, {
      accepted,
      ...step,
      keyBefore: before?.key ?? null,
      isRedated,
      erased,
      isWantedAnew: before !== undefined && isWanted(erased) !== isWanted(before.erased),
      tagsBefore: before && !isCopy ? tagsBeforeOf(accepted, before, step.verdict) : null,
      shape: before?.shape ?? null,
      decideByMs: deadline,
      dependencies,
    });
  }
  return [...decided.values()];
}
