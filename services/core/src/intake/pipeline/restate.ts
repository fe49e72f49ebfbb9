import type { Writer } from '@skerry/database';
import { isEarlierStatement, type SyncFields, uncoveredText } from '@skerry/protocol';
import { sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { type Accepted, isRead, type Verdict } from '../accepted.ts';
import { acceptStored, type StoredMessage, verifiedOf } from '../stored.ts';
import { decideMessage } from './decide.ts';
import type { Candidate, Decided, Weight } from './decided.ts';
import { loadFacts } from './load-facts.ts';
import {
  isDisproving,
  isGone,
  isOutsaid,
  isOutsaying,
  type Kept,
  type Known,
  tellsOtherwise,
} from './load-known.ts';
import { fieldsOfAccepted, isSameButDate, keyOfRow } from './statement.ts';

/** For a moment within the transaction: nobody sees it. */
const TAKEN_BACK: Verdict = {
  status: 'pending',
  reason: { code: 'CONTENT_NOT_FOUND', message: 'an earlier statement of this message replaces it' },
};

const noFile = async () => undefined;
const UNFORGOTTEN: Kept['forgottenBy'] = new Map();

const withNoted = (accepted: Accepted, notedMs: number | null): Accepted =>
  (accepted.message.notedMs ?? null) === notedMs
    ? accepted
    : { ...accepted, message: { ...accepted.message, notedMs: notedMs ?? undefined } };

/** Sent again: when it was there first is known. The time of an upload is when that was. */
function asKept(accepted: Accepted, { fields }: Known): Accepted {
  const dated = withNoted(accepted, fields.notedMs);
  const isAnew = fields.form === 'upload' && dated.message.time !== fields.time;
  return isAnew ? { ...dated, message: { ...dated.message, time: fields.time } } : dated;
}

/**
 * What a candidate does to what is kept; by `keep` it is decided as it is kept, by `retell` with what is said of it beside its text, and by
 * `erase` as forgotten, with what its sender signed.
 */
type Step = 'nothing' | 'keep' | 'redate' | 'retell' | 'erase' | 'restate';

function isTaken(theirs: SyncFields, weight: Weight, { fields }: Known): boolean {
  if (weight === 'yields') return false;
  if (weight === 'overrules') return uncoveredText(theirs) !== uncoveredText(fields);
  return isEarlierStatement(theirs, fields);
}

/**
 * What brings a content that is a file without that file, as anybody can, tells less than what was read or forgotten. What
 * is said otherwise by whoever passes it on, such as its channel, by which a permission may be judged, is not believed either
 * where the node has its own word, but where that word is refused.
 * @param isForgotten whether a FORGET in force names it, or it went with the post that it amended
 */
function stepOf({ accepted, weight = 'counts' }: Candidate, known: Known, isForgotten: boolean): Step {
  const theirs = fieldsOfAccepted(accepted);
  const isSame = isSameButDate(theirs, known.fields);
  const wasGone = isGone(known);
  if (accepted.isSkeleton && !wasGone) return 'erase';
  const tellsLess = !isRead(accepted.message) && (known.isRead || wasGone);
  if (isTaken(theirs, weight, known)) {
    // Of a skeleton alone only a peer says that it was forgotten: what was signed takes its place whole.
    const isHearsay = wasGone && !known.isRead && !isForgotten;
    if (isHearsay && !tellsLess && !accepted.isSkeleton) return 'restate';
    if (isSame) return 'redate';
    // No list and no effect has it. Who tells nothing else may have erased what it said.
    if (wasGone && (!tellsLess || accepted.isSkeleton)) return 'retell';
    if (!tellsLess) return 'restate';
  }
  return tellsLess || (!isSame && known.isRead && known.status !== 'rejected') ? 'keep' : 'nothing';
}

/**
 * Of copies of one message in a batch the first one is decided, but what was signed before a peer's word of it; since when it is there, the
 * earliest of them says, with the weight that this one has.
 */
export function datedByAll(batch: readonly Candidate[]): Candidate[] {
  const first = new Map<string, Candidate>();
  for (const candidate of batch) {
    const { accepted, weight } = candidate;
    const { itemHash } = accepted.message;
    const before = first.get(itemHash);
    if (!before) {
      first.set(itemHash, candidate);
      continue;
    }
    if (before.accepted.isSkeleton && !accepted.isSkeleton) {
      first.set(itemHash, candidate);
      continue;
    }
    const [theirs, ours] = [fieldsOfAccepted(accepted), fieldsOfAccepted(before.accepted)];
    if (theirs.sender === ours.sender && isSameButDate(theirs, ours) && isEarlierStatement(theirs, ours))
      first.set(itemHash, { ...before, weight, accepted: withNoted(before.accepted, theirs.notedMs) });
  }
  return [...first.values()];
}

/** A forgotten message as another node tells of it: what its hash or signature covers stays as it is kept, or erased. */
function retold(row: StoredMessage, { message, tags }: Accepted): StoredMessage {
  const { form, channel, time, sentTime = null, notedMs = null, content } = message;
  // What an upload says beside its file is the word of the node that took it.
  const isWord = form === 'upload' && row.content !== null && content !== null;
  return {
    ...row,
    ...{ channel, time, sent_time: sentTime, noted_ms: notedMs, tags: [...tags] },
    ...(isWord ? { content: content as StoredMessage['content'] } : {}),
  };
}

/**
 * A message whose content never came, as forgotten by the word of a peer. That tells on whose behalf it spoke, so that its FORGET can be
 * judged; its signature, without which nobody would take it once its file comes, stays.
 */
function erasedAs(row: StoredMessage, candidate: Candidate, known: Known): Candidate {
  const { accepted, weight = 'counts' } = candidate;
  const isRedated = isTaken(fieldsOfAccepted(accepted), weight, known);
  const message = verifiedOf(isRedated ? retold(row, accepted) : row);
  return { ...candidate, isRedated, accepted: { ...accepted, message } };
}

async function readRows({ trx }: Writer<Schema>, hashes: readonly string[]): Promise<StoredMessage[]> {
  if (hashes.length === 0) return [];
  return trx
    .selectFrom('messages')
    .selectAll()
    .where('item_hash', '=', sql<string>`any(${hashes})`)
    .orderBy('item_hash')
    .execute();
}

const isSettled = ({ status }: Pick<Known, 'status'>) => status === 'processed' || status === 'forgotten';

/**
 * A later statement that is in force comes as a step to `pending`, so that lists, labels and effects lose it whole. One that is forgotten
 * does, too: it would stand in the way of another sender's (decide-batch.ts).
 */
const takeBack = async (row: StoredMessage): Promise<Decided> => ({
  accepted: await acceptStored(row, noFile),
  verdict: TAKEN_BACK,
  before: row.status,
  keyBefore: keyOfRow(row),
  isRedated: false,
  erased: row.erased,
  isWantedAnew: false,
  tagsBefore: null,
  shape: row.shape,
  decideByMs: row.decide_by_ms,
  dependencies: [],
});

/**
 * Whether a copy by another sender takes the place of the one that is kept: it holds as well, and a node had it earlier. So nodes
 * that had them in another order end with the same. FORGETs count for nothing here: they were judged by whose the other copy is, and
 * are judged again once this one is in its place.
 */
async function isEarlierCopy(
  { trx }: Writer<Schema>,
  { accepted, weight = 'counts' }: Candidate,
  kept: Known,
): Promise<boolean> {
  if (weight === 'yields' || !isSettled(kept)) return false;
  if (!isEarlierStatement(fieldsOfAccepted(accepted), kept.fields)) return false;
  // Copies of one content speak on behalf of the same owner. Of what is left of one only a peer says who that is: with any key it could be the
  // earliest on all nodes otherwise.
  if (accepted.isSkeleton && accepted.owner !== kept.owner) return false;
  const { status } = decideMessage(accepted, await loadFacts(trx, [accepted], UNFORGOTTEN));
  // What is left of a forgotten message is never more than that.
  return status === 'processed' || (accepted.isSkeleton === true && status === 'forgotten');
}

/**
 * Whether what was signed takes the place of a word that it disproves. The hash of an envelope covers who signed it; of the other forms
 * anybody can sign a copy, so another sender's counts only where it is not refused. Nor is a text kept anew that is refused and tells the
 * same: it was erased.
 */
async function disproves({ trx }: Writer<Schema>, { accepted }: Candidate, kept: Known): Promise<boolean> {
  if (!isDisproving(accepted, kept)) return false;
  const { form, sender } = accepted.message;
  const isOfSigner = form === 'envelope' || sender === kept.sender;
  if (isOfSigner && tellsOtherwise(accepted, kept)) return true;
  if (!isOfSigner && accepted.owner === kept.owner) return false;
  return decideMessage(accepted, await loadFacts(trx, [accepted], UNFORGOTTEN)).status !== 'rejected';
}

export interface Restated {
  /** What is to be decided: of messages that are kept, with the statement that holds. */
  readonly candidates: readonly Candidate[];
  /** Messages whose statement gives way to an earlier one. */
  readonly restated: ReadonlySet<string>;
  /** What is to be taken back before. */
  readonly steps: readonly Decided[];
}

/**
 * Settles what no hash covers between what is kept and what the batch brings (protocol's isEarlierStatement). Where only
 * the date is an earlier one, the message stays as it is kept, also a forgotten one, and is decided by the new date.
 */
export async function restate(
  writer: Writer<Schema>,
  batch: readonly Candidate[],
  { known, forgottenBy }: Kept,
): Promise<Restated> {
  const candidates = datedByAll(batch);
  // While a node takes in what it never had, nothing is settled.
  if (known.size === 0) return { candidates, restated: new Set(), steps: [] };
  const steps = new Map<string, Step>();
  for (const candidate of candidates) {
    const { itemHash, sender } = candidate.accepted.message;
    const kept = known.get(itemHash);
    if (!kept) continue;
    if (isOutsaid(candidate.accepted, kept)) steps.set(itemHash, 'nothing');
    else if (isOutsaying(candidate.accepted, kept) || (await disproves(writer, candidate, kept)))
      steps.set(itemHash, 'restate');
    else if (kept.sender === sender) {
      const isForgotten = kept.erased === 'forgotten' || (forgottenBy.get(itemHash) ?? []).length > 0;
      steps.set(itemHash, stepOf(candidate, kept, isForgotten));
    } else if (await isEarlierCopy(writer, candidate, kept)) steps.set(itemHash, 'restate');
  }
  const changing = [...steps].filter(([, step]) => step !== 'nothing').map(([hash]) => hash);
  const rows = await readRows(writer, changing);
  const rowOf = new Map(rows.map((row) => [row.item_hash, row]));
  const settled = candidates.map(async (candidate): Promise<Candidate> => {
    const { accepted } = candidate;
    const { itemHash, notedMs = null } = accepted.message;
    const step = steps.get(itemHash);
    if (step === 'nothing') return { ...candidate, accepted: asKept(accepted, known.get(itemHash)!) };
    // By its own clock the node learned of it no later than of what is left of it.
    if (step === 'restate' && candidate.weight === 'yields')
      return { ...candidate, accepted: asKept(accepted, known.get(itemHash)!) };
    if (step === undefined || step === 'restate') return candidate;
    const row = rowOf.get(itemHash)!;
    if (step === 'keep') return { ...candidate, accepted: await acceptStored(row, noFile) };
    if (step === 'erase') return erasedAs(row, candidate, known.get(itemHash)!);
    const said = step === 'retell' ? retold(row, accepted) : { ...row, noted_ms: notedMs };
    return { ...candidate, accepted: await acceptStored(said, noFile), isRedated: true };
  });
  const replaced = rows.filter((row) => steps.get(row.item_hash) === 'restate');
  return {
    candidates: await Promise.all(settled),
    restated: new Set(replaced.map((row) => row.item_hash)),
    steps: await Promise.all(replaced.filter(isSettled).map(takeBack)),
  };
}
