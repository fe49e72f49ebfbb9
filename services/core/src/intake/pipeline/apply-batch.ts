import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Write, Writer } from '@skerry/database';
import { compareKeys, isCid, isLate, type SyncKey } from '@skerry/protocol';
import type { Transaction } from 'kysely';
import { appendEvents, type EventDraft, EventWriter } from '../../notify/events/append.ts';
import { dateAgain } from '../../state/messages/confirmations.ts';
import { dropWants, wantFiles } from '../../store/files/wanted.ts';
import type { Schema } from '../../store/schema.ts';
import { lockWrites, type Standing } from '../../store/write-lock.ts';
import type { Accepted, Verdict } from '../accepted.ts';
import type { Writing } from '../effect.ts';
import { type BatchEnd, closeBatch, sumUp } from './close-batch.ts';
import { decideBatch } from './decide-batch.ts';
import type { Candidate, Decided } from './decided.ts';
import { type Kept, loadKept } from './load-known.ts';
import { type Begun, beginBatch, isNew, type Left } from './look-ahead.ts';
import { putInLine, takeFromLine } from './reconsider-queue.ts';
import { restate } from './restate.ts';
import { forgottenKeyOfAccepted, isAmongForgotten, keyOfAccepted, type Move } from './statement.ts';
import { rewriteEffects, writeEffects } from './write-effects.ts';
import { forgetRewritten, writeDependencies, writeMessages } from './write-messages.ts';

export interface Applied extends BatchEnd {
  /** By item hash. */
  readonly verdicts: ReadonlyMap<string, Verdict>;
  readonly moves: readonly Move[];
  /** The number of the last event, of this batch or before: whoever has come to it has all that the batch says. */
  readonly lastEvent: number;
  /** Messages that were not known. */
  readonly fresh: ReadonlySet<string>;
}

const isSameKey = (a: SyncKey, b: SyncKey) => compareKeys(a, b) === 0;

/** @param known what was kept before the batch, also of what gives way in it */
function movesOf(changed: readonly Decided[], known: Kept['known']): Move[] {
  const moves: Move[] = [];
  for (const { accepted, verdict, erased, keyBefore: from } of changed) {
    const { itemHash } = accepted.message;
    const to = keyOfAccepted(accepted, erased);
    if (!from || !isSameKey(from, to)) moves.push({ itemHash, from, to });
    const gone = known.get(itemHash)?.forgottenKey ?? null;
    const come = isAmongForgotten({ status: verdict.status, erased })
      ? forgottenKeyOfAccepted(accepted)
      : null;
    if (gone !== come && !(gone && come && isSameKey(gone, come)))
      moves.push({ itemHash, from: gone, to: come, isOfForgotten: true });
  }
  return moves;
}

const isChanged = ({ before, verdict, isRedated, isWantedAnew, tagsBefore }: Decided) =>
  before !== verdict.status || isRedated || isWantedAnew || tagsBefore !== null;

/** Files that can be fetched, of messages that fit. */
const fetchable = (decided: readonly Decided[], fits: (one: Decided) => boolean) => [
  ...new Set(
    decided
      .filter(fits)
      .flatMap(({ accepted }) => accepted.needs.files ?? [])
      .filter(isCid),
  ),
];

/** All who write wait while it is found which message of a batch takes too long; that one alone has the session's limit. */
const SHARED_STATEMENT_MS = 10_000;

const NO_END: BatchEnd = { moreInLine: false, row: undefined };
const UNCHANGED = { closing: Promise.resolve(NO_END), moves: [], fresh: new Set<string>() } as const;
const NOTHING: ReadonlySet<string> = new Set();

/** What a transaction did, all but its last statement, which nobody waits for before the commit. */
interface Applying extends Omit<Applied, keyof BatchEnd> {
  readonly closing: Promise<BatchEnd>;
  readonly left: Left;
}

interface WriteOptions {
  /**
   * Hashes that leave the line with it: once nobody else writes, since whoever puts something in line has that lock, and would wait for
   * their rows.
   */
  readonly fromLine?: readonly string[];
  /** What the batch before leaves, which is still being written. */
  readonly behind?: Left | undefined;
  /** Called when all but the commit is done. */
  readonly onCommitting?: ((left: Left) => void) | undefined;
}

/**
 * Decides and writes a batch in one transaction: message rows, their effects on the state, what is to be decided again
 * because of them, and the events that tell of it all.
 */
export async function writeBatch(
  write: Write<Schema>,
  batch: readonly Candidate[],
  schedulers: ReadonlySet<string>,
  nowMs: number,
  { onCommitting, ...options }: WriteOptions = {},
): Promise<Applied> {
  const { closing, left, ...applied } = await write(async (writer) => {
    const applying = await applyBatch(writer, batch, schedulers, nowMs, options);
    onCommitting?.(applying.left);
    return applying;
  });
  return { ...applied, ...(await closing) };
}

interface ApplyOptions extends Required<Pick<WriteOptions, 'fromLine'>> {
  readonly schedulers: ReadonlySet<string>;
  readonly nowMs: number;
}

async function applyBatch(
  writer: Writer<Schema>,
  batch: readonly Candidate[],
  schedulers: ReadonlySet<string>,
  nowMs: number,
  { fromLine = [], behind }: WriteOptions,
): Promise<Applying> {
  const statementMs = batch.length > 1 ? SHARED_STATEMENT_MS : undefined;
  const begun = await beginBatch(writer.trx, batch, nowMs, { behind, statementMs });
  const applying = applyBegun(writer, batch, begun, { schedulers, nowMs, fromLine });
  // What the lock says comes before what the rows behind it say.
  await Promise.all([begun.locking, applying]);
  return applying;
}

async function applyBegun(
  writer: Writer<Schema>,
  batch: readonly Candidate[],
  begun: Begun,
  { schedulers, nowMs, fromLine }: ApplyOptions,
): Promise<Applying> {
  const { trx } = writer;
  const { standing, kept } = begun;
  if (fromLine.length > 0) await takeFromLine(trx, fromLine);
  const { candidates, restated, steps } = await restate(writer, batch, kept);
  const events = new EventWriter(writer, standing.lastSeq, nowMs);
  const write = (some: readonly Decided[]) =>
    writeSteps(writer, some, { schedulers, standing, events, nowMs });
  const earlier = await write(steps);
  if (steps.length > 0) await forgetRewritten(writer);
  const decided =
    begun.decided ??
    (await decideBatch(trx, candidates, steps.length > 0 ? await loadKept(trx, candidates) : kept, nowMs));
  const verdicts = new Map(decided.map(({ accepted, verdict }) => [accepted.message.itemHash, verdict]));
  await noteLacking(trx, decided, nowMs);
  const changed = decided.filter((one) => isChanged(one) || restated.has(one.accepted.message.itemHash));
  const wasNew = isNew(kept);
  if (changed.length === 0 && steps.length === 0) {
    const left = { ...standing, touched: NOTHING, wasNew };
    return { ...UNCHANGED, verdicts, lastEvent: standing.lastSeq, left };
  }
  // Added up while the database writes the rows.
  const [now, { moves, ...sums }] = await Promise.all([
    write(changed),
    nextTurn().then(() => sumUp(standing.digest, [...steps, ...changed], movesOf(changed, kept.known))),
  ]);
  await dropWants(
    trx,
    fetchable(changed, ({ verdict }) => verdict.status === 'forgotten'),
  );
  await dateAgain(
    trx,
    changed.flatMap(({ accepted: { message }, keyBefore }) =>
      !keyBefore && isLate(message) ? [message.itemHash] : [],
    ),
  );
  const lastEvent = events.lastSeq;
  const reconsider = [...earlier.reconsider, ...now.reconsider];
  const closing = closeBatch(trx, standing, {
    changedKeys: [...earlier.changedKeys, ...now.changedKeys],
    reconsider,
    ...{ ...sums, lastEvent },
  });
  // What fails is told by the commit.
  closing.catch(() => {});
  const fresh = new Set(
    changed.flatMap(({ accepted, keyBefore }) => (keyBefore ? [] : [accepted.message.itemHash])),
  );
  const touched = new Set([...verdicts.keys(), ...reconsider]);
  const left = { ...standing, lastSeq: lastEvent, digest: sums.digest, touched, wasNew };
  return { verdicts, closing, moves, lastEvent, fresh, left };
}

/** What pending messages hang on, and the files among that. */
async function noteLacking(
  trx: Transaction<Schema>,
  decided: readonly Decided[],
  nowMs: number,
): Promise<void> {
  // With its content a message may have come to lack something else.
  const stillPending = decided.filter(
    ({ before, verdict }) => before === 'pending' && verdict.status === 'pending',
  );
  await writeDependencies(trx, stillPending);
  const missing = fetchable(decided, ({ verdict }) => verdict.status === 'pending');
  await wantFiles(trx, missing, nowMs);
}

interface Surroundings {
  readonly schedulers: ReadonlySet<string>;
  readonly standing: Standing;
  /** Told of all that the batch does. */
  readonly events: EventWriter;
  readonly nowMs: number;
}

async function writeSteps(
  writer: Writer<Schema>,
  changed: readonly Decided[],
  { schedulers, standing, events, nowMs }: Surroundings,
): Promise<Pick<Writing, 'changedKeys' | 'reconsider'>> {
  if (changed.length === 0) return { changedKeys: new Set(), reconsider: new Set() };
  await writeMessages(writer, changed, { standing, events, nowMs });
  const drafts: EventDraft[] = [];
  const done = await writeEffects(writer.trx, changed, schedulers, drafts);
  events.write(drafts);
  return done;
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
  const { lastSeq } = await lockWrites(trx);
  const events: EventDraft[] = [];
  const { changedKeys, reconsider } = await rewriteEffects(trx, await read(trx), schedulers, events);
  await appendEvents(writer, lastSeq, events, nowMs);
  return putInLine(trx, [...changedKeys], [...reconsider]);
}
