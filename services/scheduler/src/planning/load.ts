import { instanceAddress } from '@skerry/protocol';
import type { Node, Resources } from '../view.ts';
import { ID_DIGITS_IN_ADDRESS } from './address-key.ts';
import { Holdings } from './holdings.ts';
import type { Standing } from './standing.ts';

/** A node in the plan: what may be promised of it and what already is. */
export interface NodeLoad {
  node: Node;
  standing: Standing;
  /** What may be promised: its capacity, the cores multiplied by the overcommit factor. */
  limits: Resources;
  readonly used: { cpu: number; memoryMib: number; diskGib: number };
  readonly instances: Holdings;
  /** What the addresses of its instances begin with; null where the node has no network. */
  addressHead: string | null;
  /** Its leaf in the tree of capacities, whose own this is; -1 where it is in none. */
  slot: number;
}

/** Of each, no node has more. A claim without a bound would end in sums and shares that are no numbers. */
const LIMIT_MAX = 2 ** 31;
const bounded = (claimed: number) => Math.min(claimed, LIMIT_MAX);

export const limitsOf = ({ capacity }: Node, cpuOvercommit: number): Resources => ({
  cpu: bounded(capacity.cpu * cpuOvercommit),
  memoryMib: bounded(capacity.memoryMib),
  diskGib: bounded(capacity.diskGib),
});

export const createLoad = (node: Node, standing: Standing, cpuOvercommit: number): NodeLoad => ({
  node,
  standing,
  limits: limitsOf(node, cpuOvercommit),
  used: { cpu: 0, memoryMib: 0, diskGib: 0 },
  instances: new Holdings(),
  addressHead: headOf(node),
  slot: -1,
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

/** Of each the most that one of these nodes has, when it is empty. */
export const largestOf = (loads: readonly NodeLoad[]): Resources => {
  const most = (read: (limits: Resources) => number) =>
    loads.reduce((value, { limits }) => Math.max(value, read(limits)), 0);
  return {
    cpu: most(({ cpu }) => cpu),
    memoryMib: most(({ memoryMib }) => memoryMib),
    diskGib: most(({ diskGib }) => diskGib),
  };
};

export const isBeyond = (needs: Resources, largest: Resources): boolean =>
  needs.cpu > largest.cpu || needs.memoryMib > largest.memoryMib || needs.diskGib > largest.diskGib;

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

/** Books an instance on a node. A stopped instance is booked whole: its disk is there, and it must be able to start where its disk is. */
export function addLoad(load: NodeLoad, needs: Resources, instanceId: string, sign: 1 | -1 = 1): void {
  const { used, instances } = load;
  used.cpu += sign * needs.cpu;
  used.memoryMib += sign * needs.memoryMib;
  used.diskGib += sign * needs.diskGib;
  if (sign > 0) instances.add(instanceId);
  else instances.delete(instanceId);
}

/** An id none of whose groups is zero, so that the address shows what stands before them. */
const SAMPLE_ID = 'f'.repeat(64);
const SAMPLE_TAIL = 'ffff:ffff:fff1';

export const headOf = ({ ipv6Prefix }: Node): string | null =>
  ipv6Prefix === null ? null : instanceAddress(ipv6Prefix, SAMPLE_ID).guest.slice(0, -SAMPLE_TAIL.length);

/** Hexadecimal digits as a group of an address shows them. */
function groupOf(digits: string): string {
  let from = 0;
  while (from < digits.length - 1 && digits[from] === '0') from++;
  return from === 0 ? digits : digits.slice(from);
}

const [ZERO, ONE, COLON] = [48, 49, 58];

/** The three groups of an id in one piece, where none begins with a zero, which its group does not show. */
function tailOf(id: string): string | undefined {
  const [a, b, c] = [id.charCodeAt(0), id.charCodeAt(4), id.charCodeAt(8)];
  if (a === ZERO || b === ZERO || c === ZERO) return undefined;
  return String.fromCharCode(
    a,
    id.charCodeAt(1),
    id.charCodeAt(2),
    id.charCodeAt(3),
    COLON,
    b,
    id.charCodeAt(5),
    id.charCodeAt(6),
    id.charCodeAt(7),
    COLON,
    c,
    id.charCodeAt(9),
    id.charCodeAt(10),
    ONE,
  );
}

/** The address an instance has on a node; "" where the node has no network. A million of them are asked for when a plan begins. */
export function addressOn({ node, addressHead }: NodeLoad, instanceId: string): string {
  if (addressHead === null) return '';
  const tail = tailOf(instanceId);
  if (tail !== undefined) return addressHead + tail;
  const [first, second] = [instanceId.slice(0, 4), instanceId.slice(4, 8)];
  // A run of zeros is written in another way (RFC 5952), and wherever it is longest.
  if (first === '0000' || second === '0000') return instanceAddress(node.ipv6Prefix!, instanceId).guest;
  const last = groupOf(`${instanceId.slice(8, ID_DIGITS_IN_ADDRESS)}1`);
  return `${addressHead}${groupOf(first)}:${groupOf(second)}:${last}`;
}
