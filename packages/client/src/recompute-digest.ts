import {
  AppError,
  canonicalJson,
  type InstanceView,
  instanceElement,
  type MessageStatus,
  messageElement,
  type SetDigest,
  SetSum,
} from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { EVENTS_API } from '@skerry/protocol/api/core/events';
import { INSTANCES_API } from '@skerry/protocol/api/core/instances';
import { STATE_API } from '@skerry/protocol/api/core/state';
import { NETWORK_EVENTS } from '@skerry/protocol/forms';
import { call, createAnswerParser } from './call.ts';
import {
  type AloneBudget,
  proveToldInstance,
  READ_ALONE_MAX,
  type Unproven,
} from './proofs/told-instance.ts';
import { createPatience, type Patiently } from './reads/patience.ts';
import { saysNothing } from './reads/says-nothing.ts';
import type { RefusedMessage } from './scoring/published.ts';
import type { SignedMessageSource } from './signed-message.ts';

/** A core node's digest of a set beside that of what it lists. */
export interface RecomputedDigest {
  readonly said: SetDigest;
  readonly computed: SetDigest;
  readonly isSame: boolean;
  /** Whether the node has more than was read: then nothing was compared. */
  readonly isCut: boolean;
}

export interface RecomputeOptions {
  /** What is read at most. */
  readonly max: number;
  /** Told how many were read. */
  readonly onProgress?: ((read: number) => void) | undefined;
  /** Told how many seconds are waited where the node has been asked too often. */
  readonly onWait?: ((seconds: number) => void) | undefined;
}

/** A core node that is asked more than it lets in at once. */
export interface PatientSource extends SignedMessageSource {
  readonly patiently: Patiently;
}

export const patientSource = (source: SignedMessageSource, { onWait }: RecomputeOptions): PatientSource => ({
  ...source,
  patiently: createPatience({ signal: source.signal, onWait }),
});

/** While the set goes on changing, it is read again so often. */
export const TRIES = 3;
const HASHES_PER_PAGE = 10_000;
const EVENTS_PER_PAGE = 100;
/** Events that came while the list was read: with more of them the list is read anew. */
const EVENTS_MAX = 5_000;

type Statuses = Map<string, MessageStatus>;

const parseMessage = createAnswerParser(NETWORK_EVENTS.message, 'the event message');
const parseRemoved = createAnswerParser(NETWORK_EVENTS.message_removed, 'the event message_removed');
const STATUSES: readonly string[] = ['pending', 'processed', 'rejected', 'forgotten'];
const isStatus = (text: string): text is MessageStatus => STATUSES.includes(text);

/** Every message and its status; undefined where there are more than wanted. */
async function listStatuses(
  { coreUrl, signal, patiently }: PatientSource,
  { max, onProgress }: RecomputeOptions,
): Promise<Statuses | undefined> {
  const statuses: Statuses = new Map();
  for (let page = 1; (page - 1) * HASHES_PER_PAGE <= max; page++) {
    const query = { page, pagination: HASHES_PER_PAGE, sortOrder: 1, hash_only: false } as const;
    const answer = await patiently(() =>
      call(coreUrl, NETWORK_LISTS_API.listMessageHashes, { query }, { signal }),
    );
    for (const one of answer.hashes)
      if (typeof one !== 'string' && isStatus(one.status)) statuses.set(one.item_hash, one.status);
    onProgress?.(statuses.size);
    if (statuses.size > max) return undefined;
    if (answer.hashes.length < HASHES_PER_PAGE) return statuses;
  }
  return undefined;
}

/** The first event of each message after a digest was taken: whether it came into force. */
interface Later {
  readonly byHash: ReadonlyMap<string, 'came' | 'went'>;
  /** Whether all events were read. */
  readonly isWhole: boolean;
}

export async function readLater({ coreUrl, signal, patiently }: PatientSource, from: string): Promise<Later> {
  const byHash = new Map<string, 'came' | 'went'>();
  let cursor = from;
  for (let read = 0; read < EVENTS_MAX; read += EVENTS_PER_PAGE) {
    const query = { cursor, limit: EVENTS_PER_PAGE, kinds: 'message,message_removed' };
    const page = await patiently(() => call(coreUrl, EVENTS_API.listEvents, { query }, { signal }));
    for (const event of page.events) {
      const isNew = event.kind === 'message';
      const { item_hash: hash } = (isNew ? parseMessage(event) : parseRemoved(event)).data;
      if (!byHash.has(hash)) byHash.set(hash, isNew ? 'came' : 'went');
    }
    if (page.events.length === 0 && page.next_cursor === cursor) return { byHash, isWhole: true };
    cursor = page.next_cursor;
  }
  return { byHash, isWhole: false };
}

/**
 * Puts back what changed after the digest was taken: the first event of a message tells how it was before. A message that
 * came into force is taken to be unknown before, which nearly all are.
 * @returns whether all events were read
 */
async function undoLater(source: PatientSource, statuses: Statuses, from: string): Promise<boolean> {
  const { byHash, isWhole } = await readLater(source, from);
  for (const [hash, step] of byHash) {
    if (step === 'came') statuses.delete(hash);
    else statuses.set(hash, 'processed');
  }
  return isWhole;
}

async function compareMessages(
  source: PatientSource,
  options: RecomputeOptions,
): Promise<RecomputedDigest & { readonly isSettled: boolean }> {
  const { coreUrl, signal, patiently } = source;
  const { cursor, ...said } = await patiently(() =>
    call(coreUrl, STATE_API.getMessagesDigest, {}, { signal }),
  );
  const sum = new SetSum();
  const statuses = said.count > options.max ? undefined : await listStatuses(source, options);
  if (!statuses) return { said, computed: sum.digest(), isSame: false, isCut: true, isSettled: true };
  const isSettled = await undoLater(source, statuses, cursor);
  for (const [hash, status] of statuses) {
    const element = messageElement(hash, status);
    if (element !== undefined) sum.add(element);
  }
  const computed = sum.digest();
  return { said, computed, isSame: computed.digest === said.digest, isCut: false, isSettled };
}

/**
 * Computes the digest of all messages anew from the hashes and statuses that a core node lists. It shows that the node's digest is
 * of its list; that each message was signed, or that the list is the network's, it does not show. Throws what `call` throws.
 */
export async function recomputeMessagesDigest(
  source: SignedMessageSource,
  options: RecomputeOptions,
): Promise<RecomputedDigest> {
  const patient = patientSource(source, options);
  for (let attempt = 1; ; attempt++) {
    const { isSettled, ...compared } = await compareMessages(patient, options);
    if (compared.isSame || compared.isCut || (isSettled && attempt > 1) || attempt === TRIES) return compared;
  }
}

/** The same of instances, each folded anew. */
export interface RecomputedInstances extends RecomputedDigest {
  /** Signed messages that were checked. */
  readonly verified: number;
  /** Instances that do not follow from their messages, each with the first reason. */
  readonly refused: readonly RefusedMessage[];
  /** Instances that are the node's word, by the reason. */
  readonly unproven: Readonly<Partial<Record<Unproven, number>>>;
}

const INSTANCES_PER_PAGE = 100;

interface Folding {
  readonly sum: SetSum;
  readonly refused: RefusedMessage[];
  verified: number;
  readonly unproven: Partial<Record<Unproven, number>>;
  readonly budget: AloneBudget;
  /** What the list told, by id, of instances of which the node told something else by themselves. */
  readonly changed: Map<string, string>;
  /** The same of the reading before. */
  readonly changedBefore: ReadonlyMap<string, string>;
}

type Listed = InstanceView & { readonly shared?: readonly (string | null)[] };

/** Who tells the same in its list again, and something else of the instance by itself again, has not changed it meanwhile. */
function takeUnproven(folding: Folding, { shared: _, ...view }: Listed, reason: Unproven): void {
  const { instance_id: id } = view;
  const told = canonicalJson(view);
  if (reason === 'changed') folding.changed.set(id, told);
  if (reason === 'changed' && folding.changedBefore.get(id) === told) {
    const message = 'its list says otherwise, again and again, than the node says of it by itself';
    folding.refused.push({ itemHash: id, code: 'HASH_MISMATCH', message });
  } else folding.unproven[reason] = (folding.unproven[reason] ?? 0) + 1;
}

async function foldOne(
  source: PatientSource,
  folding: Folding,
  told: Listed,
  schedulers: ReadonlySet<string>,
): Promise<void> {
  const { shared: _, ...view } = told;
  folding.sum.add(instanceElement(view));
  const refuse = (code: RefusedMessage['code'], message: string) =>
    folding.refused.push({ itemHash: view.instance_id, code, message });
  try {
    const { left } = folding.budget;
    const proof = await source.patiently(() => {
      folding.budget.left = left;
      return proveToldInstance(source, told, schedulers, folding.budget);
    });
    folding.verified += proof.verified;
    if (proof.kind === 'wrong') refuse('HASH_MISMATCH', proof.why);
    if (proof.kind === 'unproven') takeUnproven(folding, told, proof.reason);
  } catch (error) {
    if (!(error instanceof AppError) || saysNothing(error)) throw error;
    refuse(error.code, error.message);
  }
}

interface ReadInstances extends RecomputedInstances, Pick<Folding, 'changed'> {}

async function compareInstances(
  source: PatientSource,
  schedulers: ReadonlySet<string>,
  { max, onProgress }: RecomputeOptions,
  changedBefore: Folding['changedBefore'],
): Promise<ReadInstances> {
  const { coreUrl, signal, patiently } = source;
  const { cursor: _, ...said } = await patiently(() =>
    call(coreUrl, STATE_API.getInstancesDigest, {}, { signal }),
  );
  const budget = { left: READ_ALONE_MAX };
  const folding: Folding = {
    ...{ sum: new SetSum(), refused: [], verified: 0, unproven: {}, budget },
    ...{ changed: new Map(), changedBefore },
  };
  const toResult = (isCut: boolean): ReadInstances => {
    const { sum, budget: __, changedBefore: ___, ...found } = folding;
    const computed = sum.digest();
    return { said, computed, isSame: !isCut && computed.digest === said.digest, isCut, ...found };
  };
  if (said.count > max) return toResult(true);
  let cursor: string | undefined;
  for (let read = 0; read <= max; ) {
    const query = { limit: INSTANCES_PER_PAGE, bodies: 'shared', cursor } as const;
    const page = await patiently(() => call(coreUrl, INSTANCES_API.listInstances, { query }, { signal }));
    for (const [at, one] of page.instances.entries()) {
      const { left } = budget;
      await foldOne(source, folding, one, schedulers);
      // It took requests of its own.
      if (budget.left < left) onProgress?.(read + at + 1);
    }
    read += page.instances.length;
    onProgress?.(read);
    if (page.next_cursor === null) return toResult(false);
    // There may be no end to empty pages.
    if (page.instances.length === 0) read++;
    cursor = page.next_cursor;
  }
  return toResult(true);
}

/**
 * Folds every instance of a core node anew out of signed messages, and computes the digest of all of them. What does not follow is
 * named. Throws what `call` throws. @param schedulers addresses whose allocations count
 */
export async function recomputeInstancesDigest(
  source: SignedMessageSource,
  schedulers: ReadonlySet<string>,
  options: RecomputeOptions,
): Promise<RecomputedInstances> {
  const patient = patientSource(source, options);
  let before: Folding['changedBefore'] = new Map();
  for (let attempt = 1; ; attempt++) {
    const { changed, ...compared } = await compareInstances(patient, schedulers, options, before);
    const isRight = compared.isSame && compared.unproven.changed === undefined;
    if (isRight || compared.isCut || attempt === TRIES) return compared;
    before = changed;
  }
}
