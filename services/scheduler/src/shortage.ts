import type { Reason } from '@skerry/protocol';
import { fits } from './choose.ts';
import { freeOf, type NodeLoad } from './load.ts';
import type { Resources } from './view.ts';

const KINDS: readonly { key: keyof Resources; name: string; unit: string }[] = [
  { key: 'cpu', name: 'virtual cores', unit: '' },
  { key: 'memoryMib', name: 'memory', unit: ' MiB' },
  { key: 'diskGib', name: 'disk', unit: ' GiB' },
];

const plural = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`;

function describeUnusable(loads: readonly NodeLoad[]): string {
  if (loads.length === 0) return 'no compute node is known';
  const unreachable = loads.filter((load) => load.unusable?.code === 'NODE_UNREACHABLE').length;
  const unable = loads.length - unreachable;
  const why = [
    unreachable > 0 ? `${unreachable} cannot be reached` : '',
    unable > 0 ? `${unable} cannot run instances` : '',
  ].filter((part) => part !== '');
  return `none of ${plural(loads.length, 'compute node')} can take an instance: ${why.join(', ')}`;
}

/** "needs 4096 MiB of memory, the freest of 2 nodes has 2048 MiB" */
function describeLack(usable: readonly NodeLoad[], needs: Resources): string {
  const nodes = plural(usable.length, 'node');
  const lacks: string[] = [];
  for (const { key, name, unit } of KINDS) {
    const most = usable.reduce((best, load) => Math.max(best, freeOf(load)[key]), 0);
    if (most >= needs[key]) continue;
    const needed = unit === '' ? `${needs[key]} ${name}` : `${needs[key]}${unit} of ${name}`;
    const freest = usable.length === 1 ? 'the only node' : `the freest of ${nodes}`;
    lacks.push(`needs ${needed}, ${freest} has ${most}${unit} free`);
  }
  if (lacks.length > 0) return lacks.join('; ');
  if (usable.some((load) => fits(load, needs)))
    return 'an instance whose id begins alike has its address on every node that has room';
  const all = `${plural(needs.cpu, 'virtual core')}, ${needs.memoryMib} MiB and ${needs.diskGib} GiB`;
  return `needs ${all} on one node, no one of ${nodes} has them all free together`;
}

/** Why nothing of this size can be placed now: a code, and a sentence that says what is missing. */
export function explainShortage(loads: Iterable<NodeLoad>, needs: Resources): Reason {
  const all = [...loads];
  const usable = all.filter((load) => load.unusable === null);
  return usable.length === 0
    ? { code: 'NO_NODES', message: describeUnusable(all) }
    : { code: 'NO_CAPACITY', message: describeLack(usable, needs) };
}
