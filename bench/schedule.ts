import { nodeIdOf, sha256Hex } from '@skerry/protocol';
import { type Decision, Planner } from '../services/scheduler/src/planning/planner.ts';
import type { Standing } from '../services/scheduler/src/planning/standing.ts';
import type { Instance, Node } from '../services/scheduler/src/view.ts';
import type { Figures } from './measure/figures.ts';

const SIZES = [100, 1_000, 10_000];
const INSTANCES_PER_NODE = 100;
const CHANGES = 200;
const NODE_CHANGES = 20;
const MIB = 1024 ** 2;
const GOAL_INSTANCES = 1_000_000;
const GOAL_SECONDS = 5;
const USABLE: Standing = { unusable: null, leaving: null, score: null, trust: 'listed', isBelieved: true };
const DEAD: Standing = {
  unusable: { code: 'NODE_UNREACHABLE', message: 'no answer' },
  leaving: { code: 'NODE_DEAD', message: 'no answer' },
  score: null,
  trust: 'listed',
  isBelieved: true,
};
const NEEDS = [
  { cpu: 1, memoryMib: 512, diskGib: 4 },
  { cpu: 1, memoryMib: 1_024, diskGib: 8 },
  { cpu: 2, memoryMib: 2_048, diskGib: 20 },
  { cpu: 4, memoryMib: 4_096, diskGib: 40 },
];

/** Room for a hundred instances of the average size and a tenth more. */
function makeNode(index: number): Node {
  const address = `0x${(index + 1).toString(16).padStart(40, '0')}`;
  return {
    nodeId: nodeIdOf(address),
    address,
    url: `http://node${index}.test`,
    ipv6Prefix: `fd00:${(index >> 16).toString(16)}:${(index & 0xffff).toString(16)}:1::/64`,
    capacity: { cpu: 64, memoryMib: 211_200, diskGib: 1_980 },
    features: [],
    version: '1.0.0',
    reason: null,
    announcedAtMs: 1,
    itemHash: sha256Hex(`announcement ${index}`),
  };
}

const makeInstance = (index: number): Instance => ({
  instanceId: sha256Hex(`instance ${index}`),
  needs: NEEDS[index % NEEDS.length]!,
  createdAt: index,
  nodeId: null,
  nodeAddress: null,
  ipv6: '',
  reason: null,
});

function measureMs(work: () => void): number {
  const begunMs = performance.now();
  work();
  return performance.now() - begunMs;
}

/** Time that passes, and processor time of this process, which others touch less. */
function measureBoth(work: () => void): { readonly seconds: number; readonly cpuSeconds: number } {
  const before = process.cpuUsage();
  const ms = measureMs(work);
  const { user, system } = process.cpuUsage(before);
  return { seconds: ms / 1000, cpuSeconds: (user + system) / 1e6 };
}

const eachMs = (times: number, work: (round: number) => void): number[] =>
  Array.from({ length: times }, (_, round) => measureMs(() => work(round)));

const createPlanner = () => new Planner({ cpuOvercommit: 4, manages: () => true });

function benchSize(figures: Figures, count: number): void {
  const nodes = Array.from({ length: count }, (_, index) => makeNode(index));
  const total = count * INSTANCES_PER_NODE;
  const instances = Array.from({ length: total }, (_, index) => makeInstance(index));
  const before = process.memoryUsage();
  const planner = createPlanner();
  let decisions: readonly Decision[] = [];
  const full = measureBoth(() => {
    for (const node of nodes) planner.setNode(node, USABLE);
    for (const instance of instances) planner.setInstance(instance);
    decisions = planner.run();
  });
  const told = new Map(decisions.map(({ instanceId, placement }) => [instanceId, placement]));
  const placed = instances.map((instance) => ({ ...instance, ...told.get(instance.instanceId) }));
  const unplaced = placed.filter(({ nodeId }) => nodeId === null).length;
  for (const instance of placed) planner.setInstance(instance);
  const after = process.memoryUsage();
  const bytesPerInstance =
    (after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers) / total;
  const again = createPlanner();
  const restart = measureBoth(() => {
    for (const node of nodes) again.setNode(node, USABLE);
    for (const instance of placed) again.setInstance(instance);
    if (again.run().length > 0) throw new Error('a restart moved something');
  });
  const instanceMs = eachMs(CHANGES, (round) => {
    planner.setInstance(makeInstance(total + round));
    if (planner.run().length !== 1) throw new Error('the new instance was not decided');
  });
  let moved = 0;
  const deathMs = eachMs(NODE_CHANGES, (round) => {
    planner.setNode(nodes[round]!, DEAD);
    moved += planner.run().length;
  });
  const joinMs = eachMs(NODE_CHANGES, (round) => {
    planner.setNode(makeNode(count + round), USABLE);
    planner.run();
  });
  if (unplaced > 0) throw new Error(`${unplaced} instances found no place`);
  const goal = total === GOAL_INSTANCES ? ({ of: 'median', most: GOAL_SECONDS } as const) : undefined;
  figures.group(`planning ${total.toLocaleString('en')} instances on ${count.toLocaleString('en')} nodes`);
  figures.add('every instance is new', 's', full.seconds, { goal });
  figures.add('every instance is new, CPU time', 's', full.cpuSeconds);
  figures.add('all are placed already', 's', restart.seconds);
  figures.add('all are placed already, CPU time', 's', restart.cpuSeconds);
  figures.add('one more instance', 'ms', instanceMs);
  figures.add('a node dies', 'ms', deathMs);
  figures.add('instances moved by one dead node', '', moved / NODE_CHANGES);
  figures.add('a node joins', 'ms', joinMs);
  figures.add('memory of an instance', 'bytes', bytesPerInstance);
  figures.add('resident memory', 'MiB', after.rss / MIB);
}

/** Planning from nothing, after a restart, and for one change, with a hundred instances on each node. */
export async function benchSchedule(figures: Figures): Promise<void> {
  for (const count of SIZES) benchSize(figures, count);
}
