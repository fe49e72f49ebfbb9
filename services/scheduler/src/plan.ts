import type { Reason } from '@skerry/protocol';
import { chooseNode } from './choose.ts';
import { addLoad, addressOn, createLoad, type NodeLoad } from './load.ts';
import { explainShortage } from './shortage.ts';
import type { Instance, Node, Placement } from './view.ts';

export interface PlanInput {
  readonly nodes: ReadonlyMap<string, Node>;
  readonly instances: ReadonlyMap<string, Instance>;
  /** Node id -> why its last probe failed. A node that is not in it counts as reachable. */
  readonly unreachable: ReadonlyMap<string, string>;
  /** Virtual cores that may be promised for each core of a node. Memory and disk are promised once. */
  readonly cpuOvercommit: number;
  /** Whether this scheduler places on the node of this address; instances on others are left alone. */
  readonly manages: (nodeAddress: string) => boolean;
}

export interface Plan {
  /** One for every instance: a node, or the reason why there is none. */
  readonly placements: ReadonlyMap<string, Placement>;
  readonly loads: ReadonlyMap<string, NodeLoad>;
}

/** Who came first is served first; the id decides within one second. */
function compareInstances(a: Instance, b: Instance): number {
  return a.createdAt - b.createdAt || (a.instanceId < b.instanceId ? -1 : 1);
}

/** What an instance has already, and keeps: its disk is there. Undefined where it has nothing or its node is gone from the network. */
function keepPlacement(
  instance: Instance,
  loads: ReadonlyMap<string, NodeLoad>,
  manages: PlanInput['manages'],
): Placement | undefined {
  const { nodeId, nodeAddress, ipv6 } = instance;
  if (nodeId === null) return undefined;
  if (nodeAddress !== null && !manages(nodeAddress)) return { nodeId, nodeAddress, ipv6, reason: null };
  const load = loads.get(nodeId);
  if (!load) return undefined;
  const address = addressOn(load.node, instance.instanceId) || ipv6;
  addLoad(load, instance.needs, address);
  return { nodeId, nodeAddress: load.node.address, ipv6: address, reason: load.unusable };
}

function placeNew(instance: Instance, loads: ReadonlyMap<string, NodeLoad>): Placement | undefined {
  const load = chooseNode(loads.values(), instance.needs, instance.instanceId);
  if (!load) return undefined;
  const ipv6 = addressOn(load.node, instance.instanceId);
  addLoad(load, instance.needs, ipv6);
  return { nodeId: load.node.nodeId, nodeAddress: load.node.address, ipv6, reason: null };
}

const nowhere = (reason: Reason): Placement => ({ nodeId: null, nodeAddress: null, ipv6: '', reason });

/**
 * Where every instance should be. A pure function of what it is given, whatever the order of the maps.
 * What is placed stays where it is, also on a node that is out of reach or over its capacity; what is not placed goes,
 * oldest first, to the emptiest node that has room. One that finds no room does not hold up those behind it.
 */
export function plan(input: PlanInput): Plan {
  const { nodes, instances, unreachable, cpuOvercommit, manages } = input;
  const loads = new Map<string, NodeLoad>();
  for (const node of nodes.values())
    if (manages(node.address))
      loads.set(node.nodeId, createLoad(node, unreachable.get(node.nodeId), cpuOvercommit));

  const placements = new Map<string, Placement>();
  const waiting: Instance[] = [];
  for (const instance of instances.values()) {
    const kept = keepPlacement(instance, loads, manages);
    if (kept) placements.set(instance.instanceId, kept);
    else waiting.push(instance);
  }
  const unplaced: Instance[] = [];
  for (const instance of waiting.sort(compareInstances)) {
    const placed = placeNew(instance, loads);
    if (placed) placements.set(instance.instanceId, placed);
    else unplaced.push(instance);
  }
  // Only now: the figures that explain are those that are left when everything is placed.
  for (const { instanceId, needs } of unplaced)
    placements.set(instanceId, nowhere(explainShortage(loads.values(), needs)));
  return { placements, loads };
}
