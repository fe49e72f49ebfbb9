import { createMetrics, type Metrics, type Readings } from '@skerry/kit';
import type { GuestUsageListView, GuestUsageView } from '@skerry/protocol/api/compute/usage';
import type { GroupUsage } from '../groups/control-group.ts';

const PREFIX = 'skerry_compute_';
/** Instances that have labels of their own: those that the node took first, so that nobody's go when others come. */
const LABELLED_MAX = 256;

export interface MetricsSources {
  /** At most so old that those who ask at one time are told the same. */
  readonly read: () => Promise<GuestUsageListView>;
  /** What programs took in all; undefined where the node runs none. */
  readonly readPrograms: () => GroupUsage | undefined;
}

const INSTANCE = ['instance'] as const;
const DIRECTED = [...INSTANCE, 'direction'] as const;
type Value = (usage: GuestUsageView) => number | null | undefined;

const FIGURES: readonly (readonly [
  type: 'gauge' | 'counter',
  name: string,
  help: string,
  figureOf: Value,
])[] = [
  ['counter', 'instance_cpu_seconds_total', 'Processor time of its process.', ({ cpu }) => cpu.seconds],
  [
    'gauge',
    'instance_memory_bytes',
    'Resident memory of its process, without files.',
    ({ memory }) => memory.bytes,
  ],
  [
    'gauge',
    'instance_memory_granted_bytes',
    'Memory that it was granted.',
    ({ memory }) => memory.granted_bytes,
  ],
  ['gauge', 'instance_disk_bytes', 'What its disk and volumes take.', ({ disk }) => disk?.bytes],
  ['gauge', 'instance_disk_granted_bytes', 'Disk that it was granted.', ({ disk }) => disk?.granted_bytes],
];

type Network = NonNullable<GuestUsageView['network']>;
const PASSED: readonly (readonly [name: string, help: string, to: keyof Network, from: keyof Network])[] = [
  ['instance_network_bytes_total', 'Bytes to (in) and from (out) an instance.', 'in_bytes', 'out_bytes'],
  [
    'instance_network_packets_total',
    'Packets to (in) and from (out) an instance.',
    'in_packets',
    'out_packets',
  ],
];

const instancesIn = ({ guests }: GuestUsageListView) => guests.filter(({ kind }) => kind === 'instance');

/** What the node's guests take. Instances are labels, and only so many: programs come and go too fast to be any. */
export async function createUsageMetrics({ read, readPrograms }: MetricsSources): Promise<Metrics> {
  const metrics = await createMetrics({ service: 'compute', isProcess: false });
  const readLabelled = async () => instancesIn(await read()).slice(0, LABELLED_MAX);
  const readings = async (figureOf: Value): Promise<Readings> =>
    (await readLabelled()).flatMap((one) => {
      const value = figureOf(one);
      return typeof value === 'number' ? [{ labels: { instance: one.item_hash }, value }] : [];
    });
  for (const [type, name, help, figureOf] of FIGURES) {
    const watch = type === 'counter' ? metrics.watchCounter : metrics.watch;
    watch(`${PREFIX}${name}`, help, () => readings(figureOf), INSTANCE);
  }
  for (const [name, help, to, from] of PASSED) {
    const readPassed = async (): Promise<Readings> =>
      (await readLabelled()).flatMap(({ item_hash: instance, network }) =>
        network
          ? [
              { labels: { instance, direction: 'in' }, value: network[to] },
              { labels: { instance, direction: 'out' }, value: network[from] },
            ]
          : [],
      );
    metrics.watchCounter(`${PREFIX}${name}`, help, readPassed, DIRECTED);
  }
  watchNode(metrics, { read, readPrograms });
  return metrics;
}

function watchNode(metrics: Metrics, { read, readPrograms }: MetricsSources): void {
  const count = async (isCounted: (one: GuestUsageView) => boolean) =>
    (await read()).guests.filter(isCounted).length;
  const isRunning = ({ kind, since }: GuestUsageView) => kind === 'instance' && since !== null;
  metrics.watch(`${PREFIX}instances`, 'Instances of the node.', () =>
    count(({ kind }) => kind === 'instance'),
  );
  metrics.watch(`${PREFIX}instances_running`, 'Of these, those with a process.', () => count(isRunning));
  metrics.watch(
    `${PREFIX}instances_without_labels`,
    `Of these, those beyond the first ${LABELLED_MAX}, which have no figures of their own here.`,
    async () => Math.max(0, instancesIn(await read()).length - LABELLED_MAX),
  );
  metrics.watch(`${PREFIX}programs`, 'Programs in memory.', () => count(({ kind }) => kind === 'program'));
  watchPrograms(metrics, readPrograms);
}

/** What the kernel does not tell has no figure, rather than 0. */
function watchPrograms(metrics: Metrics, read: MetricsSources['readPrograms']): void {
  const { cpuSeconds, memoryBytes } = read() ?? {};
  if (typeof cpuSeconds === 'number')
    metrics.watchCounter(
      `${PREFIX}programs_cpu_seconds_total`,
      'Processor time of all programs since the node was started.',
      () => read()?.cpuSeconds ?? 0,
    );
  if (typeof memoryBytes === 'number')
    metrics.watch(
      `${PREFIX}programs_memory_bytes`,
      'Memory of all programs.',
      () => read()?.memoryBytes ?? 0,
    );
}
