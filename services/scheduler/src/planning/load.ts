import { instanceAddress } from '@skerry/protocol';
import type { Node, Resources } from '../view.ts';
import type { Standing } from './standing.ts';

/** A node in the plan: what may be promised of it and what already is. */
export interface NodeLoad {
  node: Node;
  standing: Standing;
  /** What may be promised: its capacity, the cores multiplied by the overcommit factor. */
  limits: Resources;
  readonly used: { cpu: number; memoryMib: number; diskGib: number };
  /** The leading 44 bits of the ids booked on it, which make their addresses, and how often each. */
  readonly prefixes: Map<number, number>;
  readonly instances: Set<string>;
}

export const limitsOf = ({ capacity }: Node, cpuOvercommit: number): Resources => ({
  ...capacity,
  cpu: capacity.cpu * cpuOvercommit,
});

export const createLoad = (node: Node, standing: Standing, cpuOvercommit: number): NodeLoad => ({
  node,
  standing,
  limits: limitsOf(node, cpuOvercommit),
  used: { cpu: 0, memoryMib: 0, diskGib: 0 },
  prefixes: new Map(),
  instances: new Set(),
});

/** What can still be promised; nothing where instances hold more than the node has now. */
export function freeOf({ limits, used }: NodeLoad): Resources {
  return {
    cpu: Math.max(0, limits.cpu - used.cpu),
    memoryMib: Math.max(0, limits.memoryMib - used.memoryMib),
    diskGib: Math.max(0, limits.diskGib - used.diskGib),
  };
}

export function fits(load: NodeLoad, needs: Resources): boolean {
  const { limits, used } = load;
  return (
    needs.cpu <= limits.cpu - used.cpu &&
    needs.memoryMib <= limits.memoryMib - used.memoryMib &&
    needs.diskGib <= limits.diskGib - used.diskGib
  );
}

const shareOf = (free: number, limit: number) => (limit === 0 ? 0 : free / limit);

/** The smallest free part of its cores, memory and disk: 1 is an empty node, 0 one that can take nothing. */
export function freeShareOf(load: NodeLoad): number {
  const { cpu, memoryMib, diskGib } = freeOf(load);
  const { limits } = load;
  return Math.min(
    shareOf(cpu, limits.cpu),
    shareOf(memoryMib, limits.memoryMib),
    shareOf(diskGib, limits.diskGib),
  );
}

/** How much a usable node is preferred: its free share, halved for a score of 0 or none. */
export const weightOf = (load: NodeLoad) => (freeShareOf(load) * (1 + (load.standing.score ?? 0))) / 2;

/** The bits of an instance's id that are in its address (docs/decisions.md 15). */
const ID_DIGITS_IN_ADDRESS = 11;
const prefixKey = (instanceId: string) => Number.parseInt(instanceId.slice(0, ID_DIGITS_IN_ADDRESS), 16);

/** Whether an instance whose id begins alike has the address there. */
export const isAddressTaken = (load: NodeLoad, instanceId: string) =>
  load.prefixes.has(prefixKey(instanceId));

/** Books an instance on a node. A stopped instance is booked whole: its disk is there, and it must be able to start where its disk is. */
export function addLoad(load: NodeLoad, needs: Resources, instanceId: string, sign: 1 | -1 = 1): void {
  const { used, prefixes, instances } = load;
  used.cpu += sign * needs.cpu;
  used.memoryMib += sign * needs.memoryMib;
  used.diskGib += sign * needs.diskGib;
  const key = prefixKey(instanceId);
  const count = (prefixes.get(key) ?? 0) + sign;
  if (count > 0) prefixes.set(key, count);
  else prefixes.delete(key);
  if (sign > 0) instances.add(instanceId);
  else instances.delete(instanceId);
}

/** An id none of whose groups is zero, so that the address shows what stands before them. */
const SAMPLE_ID = 'f'.repeat(64);
const SAMPLE_TAIL = 'ffff:ffff:fff1';
const headOfPrefix = new Map<string, string>();
const HEADS_MAX = 100_000;

function headOf(prefix: string): string {
  const known = headOfPrefix.get(prefix);
  if (known !== undefined) return known;
  if (headOfPrefix.size >= HEADS_MAX) headOfPrefix.clear();
  const head = instanceAddress(prefix, SAMPLE_ID).guest.slice(0, -SAMPLE_TAIL.length);
  headOfPrefix.set(prefix, head);
  return head;
}

const groupOf = (digits: string) => digits.replace(/^0{1,3}/, '');

/** The address an instance has on a node; "" where the node has no prefix. A million of them are asked for when a plan begins. */
export function addressOn({ ipv6Prefix }: Node, instanceId: string): string {
  if (ipv6Prefix === null) return '';
  const [first, second] = [instanceId.slice(0, 4), instanceId.slice(4, 8)];
  // A run of zeros is written in another way (RFC 5952), and wherever it is longest.
  if (first === '0000' || second === '0000') return instanceAddress(ipv6Prefix, instanceId).guest;
  const last = groupOf(`${instanceId.slice(8, ID_DIGITS_IN_ADDRESS)}1`);
  return `${headOf(ipv6Prefix)}${groupOf(first)}:${groupOf(second)}:${last}`;
}
