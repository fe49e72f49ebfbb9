import {
  type RecomputedDigest,
  type RecomputedInstances,
  recomputeInstancesDigest,
  recomputeMessagesDigest,
} from '@skerry/client';

/** What a core node says of all that it has, beside what its lists give. */
export interface RecomputedState {
  readonly messages: RecomputedDigest;
  readonly instances: RecomputedInstances;
  readonly schedulers: readonly string[];
}

/** Lists that a tab reads: longer ones are left to `skerry node verify`. */
const MAX = 50_000;
/** Each takes several signatures. */
const INSTANCES_MAX = 2_000;

/** Computes the digests of all messages and all instances anew. Throws AppError. @param onProgress told how many lines were read */
export async function recomputeState(
  coreUrl: string,
  schedulers: readonly string[],
  onProgress: (read: number) => void,
): Promise<RecomputedState> {
  const messages = await recomputeMessagesDigest({ coreUrl }, { max: MAX, onProgress });
  const before = messages.isCut ? 0 : messages.computed.count;
  const instances = await recomputeInstancesDigest({ coreUrl }, new Set(schedulers), {
    max: INSTANCES_MAX,
    onProgress: (read) => onProgress(before + read),
  });
  return { messages, instances, schedulers };
}
