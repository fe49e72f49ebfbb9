import type { Reason } from '@skerry/protocol';
import type { Instance, Resources } from '../view.ts';
import { CapacityTree } from './capacity-tree.ts';
import { fits, freeShareOf, type NodeLoad, weightOf } from './load.ts';
import { explainShortage } from './shortage.ts';

/** Why a node would get an instance or would not. */
export interface Candidate {
  readonly load: NodeLoad;
  readonly weight: number;
  readonly freeShare: number;
  /** Null where it has room: of those the first one counts. */
  readonly against: Reason | null;
}

export interface Candidates {
  /** In the order of preference: those with room first. */
  readonly list: readonly Candidate[];
  /** How many nodes have room, and how many speak against it, by code. */
  readonly counts: ReadonlyMap<string, number>;
}

const FITS = 'FITS';

/** What a node lacks, in the words of a shortage on it alone. */
function lackOf(load: NodeLoad, needs: Resources): Reason {
  const alone = new CapacityTree();
  alone.rebuild([load]);
  return explainShortage(alone, [load], needs);
}

function judge(load: NodeLoad, needs: Resources, instance: Instance | undefined): Candidate {
  const isOwn = instance !== undefined && load.instances.has(instance.instanceId);
  const against = (): Reason | null => {
    if (load.standing.unusable) return load.standing.unusable;
    // What it has already has room there.
    if (isOwn) return null;
    if (!fits(load, needs)) return lackOf(load, needs);
    if (instance && load.instances.hasAddressOf(instance.instanceId))
      return {
        code: 'ADDRESS_TAKEN',
        message: 'an instance with the same first id digits has its address there',
      };
    return null;
  };
  return { load, weight: weightOf(load), freeShare: freeShareOf(load), against: against() };
}

function compareCandidates(a: Candidate, b: Candidate): number {
  return (
    Number(a.against !== null) - Number(b.against !== null) ||
    b.weight - a.weight ||
    (a.load.node.nodeId < b.load.node.nodeId ? -1 : 1)
  );
}

/** Every node as a place for an instance, or for something new of a size. */
export function listCandidates(
  loads: Iterable<NodeLoad>,
  needs: Resources,
  instance: Instance | undefined,
): Candidates {
  const list = Array.from(loads, (load) => judge(load, needs, instance)).sort(compareCandidates);
  const counts = new Map<string, number>();
  for (const { against } of list) {
    const code = against?.code ?? FITS;
    counts.set(code, (counts.get(code) ?? 0) + 1);
  }
  return { list, counts };
}
