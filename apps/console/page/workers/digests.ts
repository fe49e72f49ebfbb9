import {
  type RecomputedParts,
  recomputeDerivedDigests,
  recomputeInstancesDigest,
  recomputeMessagesDigest,
  verdictOnState,
  wordsOnUnproven,
} from '@skerry/client';

/** What a core node says of all that it has, beside what its lists give, and what that comes to. */
export interface RecomputedState extends RecomputedParts {
  readonly verdict: ReturnType<typeof verdictOnState>;
  /** How many instances are the node's word, and why; undefined where there are none. */
  readonly unproven: string | undefined;
  readonly schedulers: readonly string[];
}

/** Whose messages count. */
export interface StateTrust {
  readonly schedulers: readonly string[];
  readonly creditPublishers: readonly string[];
  readonly scoringPublishers: readonly string[];
}

/** Lists that a tab reads: longer ones are left to `skerry node verify`. */
const MAX = 50_000;
/** Each takes several signatures. */
const INSTANCES_MAX = 2_000;
/** Messages of each type that state is derived from: each has a signature. */
const SIGNED_MAX = 5_000;

/** Computes the digests of all messages, all instances and what is derived from messages anew. Throws AppError. @param onProgress told how many lines were read */
export async function recomputeState(
  coreUrl: string,
  { schedulers, creditPublishers, scoringPublishers }: StateTrust,
  onProgress: (read: number) => void,
): Promise<RecomputedState> {
  const messages = await recomputeMessagesDigest({ coreUrl }, { max: MAX, onProgress });
  const before = messages.isCut ? 0 : messages.computed.count;
  const instances = await recomputeInstancesDigest({ coreUrl }, new Set(schedulers), {
    max: INSTANCES_MAX,
    onProgress: (read) => onProgress(before + read),
  });
  const trust = {
    creditPublishers: new Set(creditPublishers),
    scoringPublishers: new Set(scoringPublishers),
  };
  const folded = before + instances.computed.count;
  const derived = await recomputeDerivedDigests({ coreUrl }, trust, {
    max: SIGNED_MAX,
    onProgress: (read) => onProgress(folded + read),
  });
  const parts = { messages, instances, derived };
  return { ...parts, verdict: verdictOnState(parts), unproven: wordsOnUnproven(instances), schedulers };
}
