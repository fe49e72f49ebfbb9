import { type NodeView, type ResourcesView, SCHEDULER_API } from '@skerry/protocol/api/scheduler';
import { type CallOptions, call } from '../call.ts';

/** Whether an instance finds a node, asked before it is signed: while it waits for one, it costs as much. */

export interface WantedSize {
  readonly cpu: number;
  /** MiB. */
  readonly memory: number;
  /** GiB. */
  readonly disk: number;
}

export interface Lack {
  /** Whether a node that is there could take it at another time. */
  readonly isPassing: boolean;
  /** With the scheduler's own words in it, whatever characters they have. */
  readonly sentence: string;
}

type Node = Pick<NodeView, 'healthy' | 'leaving' | 'limits' | 'capacity'>;

const KINDS = ['cpu', 'memory_mib', 'disk_gib'] as const;

const sizeOf = ({ cpu, memory_mib: memory, disk_gib: disk }: ResourcesView) =>
  `${cpu} core${cpu === 1 ? '' : 's'}, ${memory} MiB and ${disk} GiB`;

/** The most of each that a node may give. Of one that is not used at this moment, what it says of itself may count later. */
const mostOf = ({ healthy, limits, capacity }: Node): ResourcesView =>
  healthy ? limits : largestOf([limits, capacity]);

function largestOf(all: readonly ResourcesView[]): ResourcesView {
  const [cpu, memory, disk] = KINDS.map((kind) => Math.max(0, ...all.map((one) => one[kind])));
  return { cpu: cpu!, memory_mib: memory!, disk_gib: disk! };
}

/** What an instance lacks that no node can take now. Pure. @param reasons the scheduler's own words */
export function describeLack(
  { cpu, memory, disk }: WantedSize,
  nodes: readonly Node[],
  reasons: readonly string[],
): Lack {
  const needs: ResourcesView = { cpu, memory_mib: memory, disk_gib: disk };
  const staying = nodes.filter(({ leaving }) => leaving === null).map(mostOf);
  const isPassing =
    staying.length === 0 || staying.some((most) => KINDS.every((kind) => needs[kind] <= most[kind]));
  return {
    isPassing,
    sentence: isPassing
      ? `no compute node has room for it now (${reasons.join('; ')}): it waits for one, at the same price`
      : `no compute node of this network is large enough for ${sizeOf(needs)}, even empty: ${describeMost(needs, largestOf(staying))}. It would wait for a larger one, at the same price`,
  };
}

const describeMost = (needs: ResourcesView, most: ResourcesView): string =>
  KINDS.every((kind) => needs[kind] <= most[kind])
    ? `the most of each, ${sizeOf(most)}, is on different nodes`
    : `one node has at most ${sizeOf(most)}`;

/** Undefined where there is room. Throws what the scheduler's silence or refusal is. */
export async function findLack(
  schedulerUrl: string,
  size: WantedSize,
  options: CallOptions,
): Promise<Lack | undefined> {
  const { cpu: vcpus, memory, disk } = size;
  const query = { vcpus, memory, disk };
  const { schedulable, reasons } = await call(
    schedulerUrl,
    SCHEDULER_API.simulatePlacement,
    { query },
    options,
  );
  if (schedulable) return undefined;
  const { nodes } = await call(schedulerUrl, SCHEDULER_API.listNodes, {}, options);
  return describeLack(size, nodes, reasons);
}
