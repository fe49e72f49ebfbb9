import { addressOn, freeOf, type NodeLoad } from './load.ts';
import type { Resources } from './view.ts';

export function fits(load: NodeLoad, needs: Resources): boolean {
  const free = freeOf(load);
  return needs.cpu <= free.cpu && needs.memoryMib <= free.memoryMib && needs.diskGib <= free.diskGib;
}

/** Emptiest first: by the free part of the memory (which is not overcommitted), then free cores, then node id. */
function compareLoads(a: NodeLoad, b: NodeLoad): number {
  const freeA = freeOf(a);
  const freeB = freeOf(b);
  return (
    freeB.memoryMib / b.limits.memoryMib - freeA.memoryMib / a.limits.memoryMib ||
    freeB.cpu - freeA.cpu ||
    (a.node.nodeId < b.node.nodeId ? -1 : 1)
  );
}

/**
 * The node that gets something new of this size, or undefined where none has room.
 *
 * @param instanceId where it is known: two instances whose ids begin alike have the same address on a node (44 bits of
 *   the id are in it) and are kept apart
 */
export function chooseNode(
  loads: Iterable<NodeLoad>,
  needs: Resources,
  instanceId?: string,
): NodeLoad | undefined {
  let best: NodeLoad | undefined;
  for (const load of loads) {
    if (load.unusable || !fits(load, needs)) continue;
    if (best && compareLoads(best, load) <= 0) continue;
    if (instanceId !== undefined && load.addresses.has(addressOn(load.node, instanceId))) continue;
    best = load;
  }
  return best;
}
