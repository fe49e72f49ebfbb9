import type { Reason } from '@skerry/protocol';
import type { Resources } from '../view.ts';
import type { CapacityTree } from './capacity-tree.ts';
import type { NodeLoad } from './load.ts';
import { isDistrust } from './trust.ts';

const KINDS: readonly { key: keyof Resources; name: string; unit: string }[] = [
  { key: 'cpu', name: 'virtual cores', unit: '' },
  { key: 'memoryMib', name: 'memory', unit: ' MiB' },
  { key: 'diskGib', name: 'disk', unit: ' GiB' },
];

const plural = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`;

function describeUnusable(loads: Iterable<NodeLoad>): string {
  let [total, unreachable, strange] = [0, 0, 0];
  for (const { standing } of loads) {
    total++;
    if (standing.unusable?.code === 'NODE_UNREACHABLE') unreachable++;
    if (isDistrust(standing.unusable)) strange++;
  }
  if (total === 0) return 'no compute node is known';
  const why = [
    unreachable > 0 ? `${unreachable} cannot be reached` : '',
    strange > 0 ? `${strange} are not trusted (SKERRY_SCHEDULER_TRUST, SKERRY_SCHEDULER_NODES)` : '',
    total > unreachable + strange ? `${total - unreachable - strange} cannot run instances` : '',
  ].filter((part) => part !== '');
  return `none of ${plural(total, 'compute node')} can accept an instance: ${why.join(', ')}`;
}

/** "needs 4096 MiB of memory, the freest of 2 nodes has 2048 MiB" */
function describeLack({ usable, freest }: CapacityTree, needs: Resources, hasRoom: boolean): string {
  const lacks: string[] = [];
  for (const { key, name, unit } of KINDS) {
    if (freest[key] >= needs[key]) continue;
    const needed = unit === '' ? `${needs[key]} ${name}` : `${needs[key]}${unit} of ${name}`;
    const whose = usable === 1 ? 'the only node' : `the freest of ${plural(usable, 'node')}`;
    lacks.push(`needs ${needed}, ${whose} has ${freest[key]}${unit} free`);
  }
  if (lacks.length > 0) return lacks.join('; ');
  if (hasRoom) return 'on every node with room, an instance with the same first id digits has its address';
  const all = `${plural(needs.cpu, 'virtual core')}, ${needs.memoryMib} MiB and ${needs.diskGib} GiB`;
  return `needs ${all} on one node; none of ${plural(usable, 'node')} has that free`;
}

export const NO_NODES = 'NO_NODES';
export const NO_CAPACITY = 'NO_CAPACITY';

/** Why nothing of this size can be placed now: a code, and a sentence that says what is missing. */
export function explainShortage(tree: CapacityTree, loads: Iterable<NodeLoad>, needs: Resources): Reason {
  return tree.usable === 0
    ? { code: NO_NODES, message: describeUnusable(loads) }
    : { code: NO_CAPACITY, message: describeLack(tree, needs, tree.find(needs) !== undefined) };
}
