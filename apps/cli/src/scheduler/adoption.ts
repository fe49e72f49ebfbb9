import { isLaterSaid, type SaidAllocation } from '@skerry/client';
import { type AllocationContent, canonicalJson, effectiveTime, type InstanceView } from '@skerry/protocol';

/** An instance that is somewhere else now than by the placement that counts. */
export interface Difference {
  readonly instance_id: string;
  /** By the placement that counts; null: nowhere. */
  readonly node_id: string | null;
  /** By the core node, which also counts what the old key signed later. */
  readonly node_id_now: string | null;
}

export interface Adoption {
  /** To be signed again as they are, their dates included, in this order. */
  readonly toSign: readonly AllocationContent[];
  /** Instances whose placement the new key has signed before. */
  readonly adoptedBefore: number;
  /** Instances that are where another scheduler, or the new key itself, said later. */
  readonly ofOthers: number;
  /** Instances that nobody had placed by then: the new scheduler places them. */
  readonly unplaced: readonly string[];
  readonly differences: readonly Difference[];
}

/**
 * Whether a placement counts: of the old key only what was there by a moment. Its own dates are its sender's word, and whoever has the key
 * chooses them; the time that counts between strangers is as late as a core node has seen it (docs/messages.md, "Dates").
 *
 * @param until Unix seconds, inclusive
 */
export const countsBy = (said: SaidAllocation, from: string, until: number): boolean =>
  said.sender !== from || effectiveTime(said) <= until;

const latestOf = (said: readonly SaidAllocation[]): SaidAllocation | undefined =>
  said.reduce<SaidAllocation | undefined>(
    (best, one) => (!best || isLaterSaid(one, best) ? one : best),
    undefined,
  );

const hasAddress = ({ content }: SaidAllocation) => content.ipv6 !== '';

/**
 * What only the old key said of an instance: its last word, and where that names no address the last one that did, since an instance keeps
 * its host name by having had one.
 */
function needed(said: readonly SaidAllocation[], from: string): SaidAllocation[] {
  const isOld = ({ sender }: SaidAllocation) => sender === from;
  const latest = latestOf(said);
  if (!latest) return [];
  const addressed = said.filter(hasAddress);
  const named = addressed.every(isOld) && !hasAddress(latest) ? latestOf(addressed) : undefined;
  return [named, latest].filter((one) => one !== undefined && isOld(one)) as SaidAllocation[];
}

/**
 * Which placements of an old key a new one has to sign, so that none is lost once core nodes trust the new key in its place. Signed with their
 * own dates they overrule nothing, neither while both are trusted nor afterwards. Pure.
 *
 * @param instances as a core node tells them
 * @param said by instance; those that `countsBy` lets count
 */
export function decideAdoption(
  instances: readonly Pick<InstanceView, 'instance_id' | 'node_id'>[],
  said: ReadonlyMap<string, readonly SaidAllocation[]>,
  { from, by }: { readonly from: string; readonly by: string },
): Adoption {
  const [toSign, unplaced, differences]: [AllocationContent[], string[], Difference[]] = [[], [], []];
  let [adoptedBefore, ofOthers] = [0, 0];
  for (const { instance_id: id, node_id: now } of instances) {
    const own = said.get(id) ?? [];
    const latest = latestOf(own);
    if (!latest) {
      unplaced.push(id);
      continue;
    }
    if (latest.content.node_id !== now)
      differences.push({ instance_id: id, node_id: latest.content.node_id, node_id_now: now });
    const signed = new Set(
      own.filter(({ sender }) => sender === by).map((one) => canonicalJson(one.content)),
    );
    const wanted = needed(own, from);
    const missing = wanted.filter(({ content }) => !signed.has(canonicalJson(content)));
    toSign.push(...missing.map(({ content }) => content));
    if (missing.length > 0) continue;
    if (signed.has(canonicalJson(latest.content))) adoptedBefore++;
    else ofOthers++;
  }
  return { toSign, adoptedBefore, ofOthers, unplaced, differences };
}
