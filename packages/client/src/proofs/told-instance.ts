import {
  ANY_TIME,
  AppError,
  canonicalJson,
  type InstanceVerdict,
  type InstanceView,
  proveInstance,
  type VerifiedMessage,
  verifyShared,
} from '@skerry/protocol';
import { INSTANCES_API } from '@skerry/protocol/api/core/instances';
import { call } from '../call.ts';
import { checkAsked } from '../reads/asked.ts';
import { listedOf, readWithShared, type SignedMessageSource, verifyListed } from '../signed-message.ts';

/** Messages that are read by themselves; an instance follows from nine at most, however many it had. */
export const SOURCES_MAX = 16;
/** Instances of a list that are read by themselves: each takes a request, and a few more for each of its messages that lists lack. */
export const READ_ALONE_MAX = 500;

/** How many instances of a list may still be read by themselves. */
export interface AloneBudget {
  left: number;
}

/** An instance as a core node tells it with `bodies=shared`. */
export interface ToldInstanceView {
  readonly instance_id: string;
  readonly shared?: readonly (string | null)[];
  /** Hashes of the messages in `shared`; lists do not have them. */
  readonly sources?: readonly string[];
}

/** Why an instance is neither proven nor refuted. */
export const UNPROVEN = {
  delegated: 'signed by others for the owner, who may allow that',
  dated: 'with a later date than the messages give: an update that changes nothing gives one',
  changed: 'changed while being read',
  missing: 'lacking a message that the core node does not give',
  notChecked: `not checked: more than ${READ_ALONE_MAX} have messages that are too long for a list, or files`,
} as const;
export type Unproven = keyof typeof UNPROVEN;

/** What an instance comes to by its signed messages. */
export type InstanceProof = {
  /** Messages whose hash and signature were checked. */
  readonly verified: number;
} & (
  | { readonly kind: 'proven' }
  /** What does not follow. */
  | { readonly kind: 'wrong'; readonly why: string }
  /** `by`: who spoke for the owner. */
  | { readonly kind: 'unproven'; readonly reason: Unproven; readonly by: readonly string[] }
);

/**
 * Reads a message by its hash, and checks that somebody signed it. Throws what `call` and `verifyListed` throw.
 * @param shared what nodes pass on of it, where a list told that: it alone says since when the message is there
 */
export async function readByHash(
  source: SignedMessageSource,
  hash: string,
  shared: string | null = null,
): Promise<VerifiedMessage> {
  const view = await readWithShared(source, hash);
  return verifyListed(source, { ...listedOf(view), shared: view.shared ?? shared });
}

/** Whether the message says what it says: of one whose content is a file, nodes pass on the name of the file alone. */
const isWhole = (message: VerifiedMessage | null): message is VerifiedMessage =>
  message !== null && message.content !== null;

const verifyAll = (shared: readonly (string | null)[]) =>
  shared.map((text) => (text === null ? null : verifyShared(text, ANY_TIME)));

const unproven = (reason: Unproven, verified = 0, by: readonly string[] = []): InstanceProof => ({
  ...{ kind: 'unproven', reason, verified, by },
});

/** An update that changes nothing gives an instance its date, and is not among what it follows from. */
const isLaterDateAlone = ({ differences }: InstanceVerdict) =>
  differences.every(({ name, said, computed }) => name === 'updated_at' && Number(said) > Number(computed));

function judge(verdict: InstanceVerdict): InstanceProof {
  const { differences, onBehalf, verified } = verdict;
  const [first] = differences;
  if (first && !isLaterDateAlone(verdict)) {
    const why = `${first.name} is ${first.said}, signed was ${first.computed}`;
    return { kind: 'wrong', verified, why };
  }
  if (first) return unproven('dated', verified);
  return onBehalf.length > 0 ? unproven('delegated', verified, onBehalf) : { kind: 'proven', verified };
}

/** The instance by itself, with the hashes that lists lack. */
function readAlone({ coreUrl, signal }: SignedMessageSource, id: string) {
  const input = { params: { instance_id: id }, query: { bodies: 'shared' } } as const;
  return call(coreUrl, INSTANCES_API.getInstance, input, { signal }).then((told) =>
    checkAsked(id, 'instance_id', told),
  );
}

const isSame = (told: ToldInstanceView, alone: InstanceView) =>
  canonicalJson({ ...told, shared: null, sources: null }) ===
  canonicalJson({ ...alone, shared: null, sources: null });

/** Proves an instance of which a list lacks messages: each of them is read by itself. */
async function proveByHash(
  source: SignedMessageSource,
  told: ToldInstanceView,
  schedulers: ReadonlySet<string>,
): Promise<InstanceProof> {
  const { shared: _, sources: __, ...view } = told;
  const alone = told.sources === undefined ? await readAlone(source, told.instance_id) : told;
  const given = verifyAll(alone.shared ?? []);
  const { sources = [] } = alone;
  const lacking = sources
    .map((hash, at) => ({ hash, at }))
    .filter(({ at }) => !isWhole(given[at] ?? null))
    .slice(0, SOURCES_MAX);
  if (lacking.length === 0) return unproven('missing', given.length);
  const read = await Promise.all(lacking.map(({ hash, at }) => readByHash(source, hash, alone.shared?.[at])));
  const messages = [...given.filter(isWhole), ...read];
  if (!read.every(isWhole)) return unproven('missing', messages.length);
  const proof = judge(proveInstance({ view, shared: messages }, schedulers));
  const hasChanged = proof.kind === 'wrong' && alone !== told && !isSame(told, alone as InstanceView);
  return hasChanged ? unproven('changed', proof.verified) : proof;
}

/**
 * Whether an instance follows from its signed messages. Those that a list lacks, for they are too long or their content is a file, are
 * read by their hash. It does not show that nothing newer was signed. Throws AppError for a text that nobody signed, where none of the
 * messages makes the instance, and what `call` throws.
 *
 * @param schedulers addresses whose allocations count
 * @param budget of all instances that are proven together; where it is spent, the instance is not checked
 */
export async function proveToldInstance(
  source: SignedMessageSource,
  told: ToldInstanceView,
  schedulers: ReadonlySet<string>,
  budget: AloneBudget,
): Promise<InstanceProof> {
  const { shared = [null], sources: _, ...view } = told;
  const given = verifyAll(shared);
  if (given.every(isWhole)) return judge(proveInstance({ view, shared: given }, schedulers));
  if (budget.left === 0) return unproven('notChecked', given.filter(isWhole).length);
  budget.left--;
  try {
    return await proveByHash(source, told, schedulers);
  } catch (error) {
    // Its node has the message, or the file, not yet, or the instance not any more.
    if (error instanceof AppError && error.kind === 'missing') return unproven('missing');
    throw error;
  }
}
