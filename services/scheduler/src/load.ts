import { instanceAddress, type Reason } from '@skerry/protocol';
import type { Node, Resources } from './view.ts';

/** A node while a plan is being made: what may be promised of it and what already is. */
export interface NodeLoad {
  readonly node: Node;
  /** Why it gets nothing new, or null. */
  readonly unusable: Reason | null;
  /** What may be promised: its capacity, the cores multiplied by the overcommit factor. */
  readonly limits: Resources;
  used: Resources;
  /** Addresses of the instances booked on it. */
  readonly addresses: Set<string>;
}

function unusableReason(node: Node, unreachable: string | undefined): Reason | null {
  if (node.reason) return node.reason;
  if (node.ipv6Prefix === null)
    return { code: 'NODE_WITHOUT_PREFIX', message: 'the node has no IPv6 network for instances' };
  if (unreachable !== undefined) return { code: 'NODE_UNREACHABLE', message: unreachable };
  return null;
}

/** @param unreachable why the last probe of the node failed; undefined where it did not */
export function createLoad(node: Node, unreachable: string | undefined, cpuOvercommit: number): NodeLoad {
  const { cpu, memoryMib, diskGib } = node.capacity;
  return {
    node,
    unusable: unusableReason(node, unreachable),
    limits: { cpu: cpu * cpuOvercommit, memoryMib, diskGib },
    used: { cpu: 0, memoryMib: 0, diskGib: 0 },
    addresses: new Set(),
  };
}

/** What can still be promised; nothing where instances hold more than the node has now. */
export function freeOf(load: NodeLoad): Resources {
  const { limits, used } = load;
  return {
    cpu: Math.max(0, limits.cpu - used.cpu),
    memoryMib: Math.max(0, limits.memoryMib - used.memoryMib),
    diskGib: Math.max(0, limits.diskGib - used.diskGib),
  };
}

// Deriving an address takes about 10 us, and every plan asks for all of them.
const knownAddresses = new WeakMap<Node, Map<string, string>>();

/** The address an instance has on a node; "" where the node has no prefix. */
export function addressOn(node: Node, instanceId: string): string {
  if (node.ipv6Prefix === null) return '';
  const known = knownAddresses.get(node) ?? new Map<string, string>();
  knownAddresses.set(node, known);
  const address = known.get(instanceId) ?? instanceAddress(node.ipv6Prefix, instanceId).guest;
  known.set(instanceId, address);
  return address;
}

/** Books an instance on a node. A stopped instance is booked whole: its disk is there, and it must be able to start where its disk is. */
export function addLoad(load: NodeLoad, needs: Resources, address: string): void {
  const { used } = load;
  load.used = {
    cpu: used.cpu + needs.cpu,
    memoryMib: used.memoryMib + needs.memoryMib,
    diskGib: used.diskGib + needs.diskGib,
  };
  if (address !== '') load.addresses.add(address);
}
