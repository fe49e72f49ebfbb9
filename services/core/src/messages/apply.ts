import { compareKeys, isCid, isLate, type SyncKey } from '@skerry/protocol';
import type { Transaction } from 'kysely';
import type { Writer } from '../db/copy.ts';
import type { Schema } from '../db/schema.ts';
import { appendEvents, type EventDraft, lockEvents } from '../events/append.ts';
import { dropWants, wantFiles } from '../files/wanted.ts';
import type { Accepted } from './accepted.ts';
import { dateAgain } from './confirmations.ts';
import type { Writing } from './effects/effect.ts';
import { rewriteEffects, writeEffects } from './effects.ts';
import { judge } from './judge.ts';
import type { Candidate, Judged, Outcome } from './judged.ts';
import { loadKnown } from './known.ts';
import { putInLine } from './line.ts';
import { forgetRewritten, restate } from './restate.ts';
import { keyOfAccepted, type Move } from './statement.ts';
import { writeDependencies, writeMessages } from './write.ts';

export interface Applied {
  /** By item hash. */
  readonly outcomes: ReadonlyMap<string, Outcome>;
  /** Whether messages stand in line to be decided again because of this batch. */
  readonly moreInLine: boolean;
  readonly moves: readonly Move[];
  /** Messages that were not known. */
  readonly fresh: ReadonlySet<string>;
}

const isSameKey = (a: SyncKey, b: SyncKey) => compareKeys(a, b) === 0;

function movesOf(changed: readonly Judged[]): Move[] {
  return changed.flatMap(({ accepted, kept }) => {
    const to = keyOfAccepted(accepted);
    return kept && isSameKey(kept, to) ? [] : [{ itemHash: accepted.message.itemHash, from: kept, to }];
  });
}

/** Files that can be fetched, of messages that fit. */
const fetchable = (judged: readonly Judged[], fits: (one: Judged) => boolean) => [
  ...new Set(
    judged
      .filter(fits)
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
  const known = await loadKnown(trx, batch);
  const { candidates, restated, steps } = await restate(writer, batch, known);
  const earlier = await writeSteps(writer, steps, schedulers, nowMs);
  if (steps.length > 0) await forgetRewritten(writer);
  const judged = await judge(
    trx,
    candidates,
    steps.length > 0 ? await loadKnown(trx, candidates) : known,
    nowMs,
  );
  const outcomes = new Map(judged.map(({ accepted, outcome }) => [accepted.message.itemHash, outcome]));
  // With its content a message may have come to lack something else.
  const stillPending = judged.filter(
    ({ before, outcome }) => before === 'pending' && outcome.status === 'pending',
  );
  await writeDependencies(trx, stillPending);
  const missing = fetchable(judged, ({ outcome }) => outcome.status === 'pending');
  await wantFiles(trx, missing, nowMs);
  const changed = judged.filter(
    ({ accepted, before, outcome, isRedated }) =>
      before !== outcome.status || isRedated || restated.has(accepted.message.itemHash),
  );
  if (changed.length === 0) return { outcomes, moreInLine: false, moves: [], fresh: new Set() };
  const now = await writeSteps(writer, changed, schedulers, nowMs);
  await dropWants(
    trx,
    fetchable(changed, ({ outcome }) => outcome.status === 'forgotten'),
  );
  const moreInLine = await putInLine(
    trx,
    [...earlier.changedKeys, ...now.changedKeys],
    [...earlier.reconsider, ...now.reconsider],
  );
  const events = [...earlier.events, ...now.events];
  if (events.length > 0) await appendEvents(writer, lastSeq, events, nowMs);
  const fresh = new Set(changed.flatMap(({ accepted, kept }) => (kept ? [] : [accepted.message.itemHash])));
  await dateAgain(
    trx,
    changed.flatMap(({ accepted: { message }, kept }) =>
      !kept && isLate(message) ? [message.itemHash] : [],
    ),
  );
  return { outcomes, moreInLine, moves: movesOf(changed), fresh };
}

async function writeSteps(
  writer: Writer<Schema>,
  changed: readonly Judged[],
  schedulers: ReadonlySet<string>,
  nowMs: number,
): Promise<Pick<Writing, 'events' | 'changedKeys' | 'reconsider'>> {
  if (changed.length === 0) return { events: [], changedKeys: new Set(), reconsider: new Set() };
  const events = await writeMessages(writer, changed, nowMs);
  return { events, ...(await writeEffects(writer.trx, changed, schedulers, events)) };
}

/** Reads messages in force, as they are in the transaction. */
export type ReadInForce = (trx: Transaction<Schema>) => Promise<readonly Accepted[]>;

/**
 * Derives again what follows from messages in force, because other senders are trusted now, with the events that tell of
 * it. They are read under the lock of all who write: what was forgotten a moment ago stays without effect.
 * @returns whether messages stand in line to be decided again because of it
 */
export async function applyAgain(
  writer: Writer<Schema>,
  read: ReadInForce,
  schedulers: ReadonlySet<string>,
  nowMs: number,
): Promise<boolean> {
  const { trx } = writer;
  const lastSeq = await lockEvents(trx);
  const events: EventDraft[] = [];
  const { changedKeys, reconsider } = await rewriteEffects(trx, await read(trx), schedulers, events);
  if (events.length > 0) await appendEvents(writer, lastSeq, events, nowMs);
  return putInLine(trx, [...changedKeys], [...reconsider]);
}
