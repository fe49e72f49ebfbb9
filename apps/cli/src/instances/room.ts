import { call } from '@skerry/client/call';
import { type NodeView, type ResourcesView, SCHEDULER_API } from '@skerry/protocol/api/scheduler';
import { confirm } from '../confirm.ts';
import type { Context } from '../context.ts';
import type { InstanceSize } from '../credits/price.ts';
import { ASIDE } from '../network/gateway.ts';
import { plainText } from '../output/text.ts';

/** Whether an instance finds a node, asked before it is signed: while it waits for one, it costs as much. */

export interface RoomOptions {
  /** Whether it may be larger than every node. */
  readonly yes?: boolean;
}

type Node = Pick<NodeView, 'healthy' | 'leaving' | 'limits' | 'capacity'>;

interface Lack {
  /** Whether a node that is there could take it at another time. */
  readonly isPassing: boolean;
  readonly sentence: string;
}

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
  { cpu, memory, disk }: InstanceSize,
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
      ? `no compute node has room for it now (${plainText(reasons.join('; '))}): it waits for one, at the same price`
      : `no compute node of this network is large enough for ${sizeOf(needs)}, even empty: ${describeMost(needs, largestOf(staying))}. It would wait for a larger one, at the same price`,
  };
}

const describeMost = (needs: ResourcesView, most: ResourcesView): string =>
  KINDS.every((kind) => needs[kind] <= most[kind])
    ? `the most of each, ${sizeOf(most)}, is on different nodes`
    : `one node has at most ${sizeOf(most)}`;

/** Undefined where there is room, and where nobody says. */
async function findLack({ findService }: Context, size: InstanceSize): Promise<Lack | undefined> {
  try {
    const url = await findService('scheduler');
    const { cpu: vcpus, memory, disk } = size;
    const query = { vcpus, memory, disk };
    const { schedulable, reasons } = await call(url, SCHEDULER_API.simulatePlacement, { query }, ASIDE);
    if (schedulable) return undefined;
    const { nodes } = await call(url, SCHEDULER_API.listNodes, {}, ASIDE);
    return describeLack(size, nodes, reasons);
  } catch {
    // It is created all the same.
    return undefined;
  }
}

/**
 * Says what an instance would wait for; asks before one that only another node than there is could take. Throws CONFIRMATION_REQUIRED
 * where nobody can be asked, or the answer is no.
 */
export async function confirmRoom(context: Context, size: InstanceSize, { yes }: RoomOptions): Promise<void> {
  const lack = await findLack(context, size);
  if (lack === undefined) return;
  const { isPassing, sentence } = lack;
  if (isPassing || yes) {
    context.output.note(sentence);
    return;
  }
  await confirm(context, `${sentence}. Create it?`, {
    unasked: sentence,
    unattended: 'choose a smaller size, or create it all the same with --yes',
    refused: 'not confirmed; nothing was created',
  });
}
