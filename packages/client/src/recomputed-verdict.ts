import { DERIVED_KINDS } from '@skerry/protocol';
import { UNPROVEN, type Unproven } from './proofs/told-instance.ts';
import type { RecomputedDerived } from './recompute-derived.ts';
import type { RecomputedDigest, RecomputedInstances } from './recompute-digest.ts';

/** What a core node says of all that it has, beside what its lists give. */
export interface RecomputedParts {
  readonly messages: RecomputedDigest;
  readonly instances: RecomputedInstances;
  readonly derived: RecomputedDerived;
}

/** Of these instances nothing was checked; of the others that are not proven, all but who may sign, and a date, was. */
const UNCHECKED: readonly Unproven[] = ['changed', 'missing', 'notChecked'];

/**
 * `same`: all of it is as the node says. `cut`: so is what was compared, and there was more than was read. `unchecked`: so is what was
 * compared, and some instances could not be checked. `different`: something is not as the node says, or not as it was signed.
 */
export function verdictOnState({
  messages,
  instances,
  derived,
}: RecomputedParts): 'same' | 'cut' | 'unchecked' | 'different' {
  const digests = [messages, instances, ...DERIVED_KINDS.map((kind) => derived.kinds[kind])];
  const isRefused = instances.refused.length + derived.refused.length > 0;
  if (isRefused || digests.some(({ isSame, isCut }) => !isSame && !isCut)) return 'different';
  if (digests.some(({ isCut }) => isCut)) return 'cut';
  return UNCHECKED.some((reason) => (instances.unproven[reason] ?? 0) > 0) ? 'unchecked' : 'same';
}

/** How many instances are the node's word, and why: `2 changed while they were read`. Undefined where there are none. */
export function wordsOnUnproven({ unproven }: Pick<RecomputedInstances, 'unproven'>): string | undefined {
  const parts = (Object.keys(UNPROVEN) as Unproven[]).flatMap((reason) => {
    const count = unproven[reason] ?? 0;
    return count > 0 ? [`${count} ${UNPROVEN[reason]}`] : [];
  });
  return parts.length > 0 ? parts.join('; ') : undefined;
}
