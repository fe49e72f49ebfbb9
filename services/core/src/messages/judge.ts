import type { MessageStatus } from '@skerry/protocol';
import type { Transaction } from 'kysely';
import type { Schema } from '../db/schema.ts';
import type { Decision } from './accepted.ts';
import { loadFacts } from './facts.ts';
import type { Candidate, Judged, Outcome } from './judged.ts';
import type { Known } from './known.ts';
import { decideMessage, dependenciesOf } from './verdict.ts';

const outcomeOf = (decision: Decision, decideByMs: number, nowMs: number): Outcome => {
  if (decision.status === 'processed') return { status: 'processed', reason: null };
  if (decision.status === 'pending' && nowMs >= decideByMs)
    return { status: 'rejected', reason: decision.reason };
  return decision;
};

const settled: readonly MessageStatus[] = ['processed', 'forgotten'];

/**
 * The network form's item hash does not cover the sender, so strangers can sign a copy of somebody's message. A copy
 * neither disturbs the one that is in force nor stands in its way: only a better verdict takes the place of a worse one.
 */
function judgeCopy(before: Known, outcome: Outcome): { outcome: Outcome; before: MessageStatus } {
  if (settled.includes(before.status))
    return { outcome: { status: before.status, reason: null }, before: before.status };
  if (before.status === 'pending' && outcome.status === 'pending')
    return { outcome: TAKEN, before: 'rejected' };
  const isBetter = settled.includes(outcome.status) || before.status === 'rejected';
  return { outcome, before: isBetter ? before.status : outcome.status };
}

/** Nobody can say yet which of two is right, and one is kept. The other is not acknowledged, so that its sender tries again. */
const TAKEN: Outcome = {
  status: 'rejected',
  reason: {
    code: 'CONTENT_NOT_FOUND',
    message:
      'a copy by another sender waits for what this message lacks; send that first, then the message again',
  },
};

/** Decides the batch one message after another, each seeing what those before it changed. */
export async function judge(
  trx: Transaction<Schema>,
  batch: readonly Candidate[],
  known: ReadonlyMap<string, Known>,
  nowMs: number,
): Promise<Judged[]> {
  const facts = await loadFacts(
    trx,
    batch.map(({ accepted }) => accepted),
  );
  const judged = new Map<string, Judged>();
  for (const { accepted, decideByMs, isRedated = false } of batch) {
    const hash = accepted.message.itemHash;
    if (judged.has(hash)) continue;
    const before = known.get(hash);
    const decision = decideMessage(accepted, facts);
    const deadline = before?.decideByMs ?? decideByMs;
    const own = outcomeOf(decision, deadline, nowMs);
    const isCopy = before !== undefined && before.sender !== accepted.message.sender;
    const verdict = isCopy ? judgeCopy(before, own) : { outcome: own, before: before?.status ?? null };
    if (!isCopy || verdict.before !== verdict.outcome.status) facts.note(accepted, decision);
    const { outcome } = verdict;
    const dependencies = dependenciesOf(accepted, facts).filter(
      // A file that was there once stays known.
      (key) => outcome.status !== 'processed' || !key.startsWith('file:'),
    );
    judged.set(hash, {
      accepted,
      ...verdict,
      kept: before?.key ?? null,
      isRedated,
      shape: before?.shape ?? null,
      decideByMs: deadline,
      dependencies,
    });
  }
  return [...judged.values()];
}
