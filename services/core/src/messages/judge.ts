import { sql, type Transaction } from 'kysely';
import type { MessageStatus, Schema } from '../db/schema.ts';
import type { Decision } from './accepted.ts';
import { loadFacts } from './facts.ts';
import type { Candidate, Judged, Outcome } from './judged.ts';
import { decideMessage, dependenciesOf } from './verdict.ts';

interface Known {
  readonly status: MessageStatus;
  readonly shape: number | null;
  readonly decideByMs: number;
}

async function loadKnown(trx: Transaction<Schema>, batch: readonly Candidate[]): Promise<Map<string, Known>> {
  const hashes = batch.map(({ accepted }) => accepted.message.itemHash);
  const { rows } = await sql<{ item_hash: string; status: MessageStatus; shape: number | null; decide_by_ms: number }>`
    select item_hash, status, shape, decide_by_ms from messages where item_hash = any(${hashes})`.execute(trx);
  return new Map(
    rows.map((row) => [
      row.item_hash,
      { status: row.status, shape: row.shape, decideByMs: row.decide_by_ms },
    ]),
  );
}

const outcomeOf = (decision: Decision, decideByMs: number, nowMs: number): Outcome => {
  if (decision.status === 'processed') return { status: 'processed', reason: null };
  if (decision.status === 'pending' && nowMs >= decideByMs)
    return { status: 'rejected', reason: decision.reason };
  return decision;
};

/** Decides the batch one message after another, each seeing what those before it changed. */
export async function judge(
  trx: Transaction<Schema>,
  batch: readonly Candidate[],
  nowMs: number,
): Promise<Judged[]> {
  const known = await loadKnown(trx, batch);
  const facts = await loadFacts(
    trx,
    batch.map(({ accepted }) => accepted),
  );
  const judged = new Map<string, Judged>();
  for (const { accepted, decideByMs } of batch) {
    const hash = accepted.message.itemHash;
    if (judged.has(hash)) continue;
    const before = known.get(hash);
    const decision = decideMessage(accepted, facts);
    const deadline = before?.decideByMs ?? decideByMs;
    const outcome = outcomeOf(decision, deadline, nowMs);
    facts.note(accepted, decision);
    const dependencies = dependenciesOf(accepted, facts).filter(
      // A file that was there once stays known.
      (key) => outcome.status !== 'processed' || !key.startsWith('file:'),
    );
    judged.set(hash, {
      accepted,
      outcome,
      before: before?.status ?? null,
      shape: before?.shape ?? null,
      decideByMs: deadline,
      dependencies,
    });
  }
  return [...judged.values()];
}
