import { isCid } from '@skerry/protocol';
import type { Writer } from '../db/copy.ts';
import type { Schema } from '../db/schema.ts';
import { appendEvents, lockEvents } from '../events/append.ts';
import { wantFiles } from '../files/wanted.ts';
import { writeEffects } from './effects.ts';
import { judge } from './judge.ts';
import type { Candidate, Judged, Outcome } from './judged.ts';
import { putInLine } from './line.ts';
import { writeDependencies, writeMessages } from './write.ts';

export interface Applied {
  /** By item hash. */
  readonly outcomes: ReadonlyMap<string, Outcome>;
  /** Whether messages stand in line to be decided again because of this batch. */
  readonly moreInLine: boolean;
}

/** Files that can be fetched and that messages lack. */
const missingFiles = (judged: readonly Judged[]) => [
  ...new Set(
    judged
      .filter(({ outcome }) => outcome.status === 'pending')
      .flatMap(({ accepted }) => accepted.needs.files ?? [])
      .filter(isCid),
  ),
];

/**
 * Decides and writes a batch in one transaction: message rows, their effects on the state, what is to be decided again
 * because of them, and the events that tell of it all.
 */
export async function applyBatch(
  writer: Writer<Schema>,
  batch: readonly Candidate[],
  schedulers: ReadonlySet<string>,
  nowMs: number,
): Promise<Applied> {
  const { trx } = writer;
  const lastSeq = await lockEvents(trx);
  const judged = await judge(trx, batch, nowMs);
  const outcomes = new Map(judged.map(({ accepted, outcome }) => [accepted.message.itemHash, outcome]));
  const changed = judged.filter(({ before, outcome }) => before !== outcome.status);
  // With its content a message may have come to lack something else.
  const stillPending = judged.filter(
    ({ before, outcome }) => before === 'pending' && outcome.status === 'pending',
  );
  await writeDependencies(trx, stillPending);
  await wantFiles(trx, missingFiles(judged), nowMs);
  if (changed.length === 0) return { outcomes, moreInLine: false };
  const events = await writeMessages(writer, changed, nowMs);
  const { changedKeys, reconsider } = await writeEffects(trx, changed, schedulers, events);
  const moreInLine = await putInLine(trx, [...changedKeys], [...reconsider]);
  if (events.length > 0) await appendEvents(writer, lastSeq, events, nowMs);
  return { outcomes, moreInLine };
}
