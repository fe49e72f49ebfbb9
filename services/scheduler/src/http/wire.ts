import type { Reason } from '@skerry/protocol';
import { freeOf, type NodeLoad } from '../load.ts';
import type { Plan } from '../plan.ts';
import type { Placement, Resources, View } from '../view.ts';

/** Wire shapes of the deployed scheduler's v0 interface; our own fields stand beside its. Lists are in order of id. */

export interface PeriodView {
  /** ISO 8601. Old means that the scheduler no longer follows the network. */
  start_timestamp: string;
  duration_seconds: number;
}

interface ResourcesView {
  cpu: number;
  memory_mib: number;
  disk_gib: number;
}

interface NodeRef {
  node_id: string;
  url: string | null;
  ipv6: string | null;
  supports_ipv6: boolean;
}

const compareTexts = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

export function periodView(checkedAtMs: number, durationSeconds: number): PeriodView {
  return { start_timestamp: new Date(checkedAtMs).toISOString(), duration_seconds: durationSeconds };
}

const resourcesView = ({ cpu, memoryMib, diskGib }: Resources): ResourcesView => ({
  cpu,
  memory_mib: memoryMib,
  disk_gib: diskGib,
});

/** Node id -> the instances placed on it. */
export function groupByNode({ loads, placements }: Plan): Map<string, string[]> {
  const groups = new Map<string, string[]>(
    [...loads.keys()].sort(compareTexts).map((nodeId) => [nodeId, []]),
  );
  for (const instanceId of [...placements.keys()].sort(compareTexts)) {
    const { nodeId } = placements.get(instanceId)!;
    if (nodeId === null) continue;
    const group = groups.get(nodeId);
    if (group) group.push(instanceId);
    else groups.set(nodeId, [instanceId]);
  }
  return groups;
}

/** The instances without a node, and why. */
export function listWaiting(plan: Plan): { vm_hash: string; reason: Reason | null }[] {
  return [...plan.placements]
    .filter(([, placement]) => placement.nodeId === null)
    .map(([instanceId, { reason }]) => ({ vm_hash: instanceId, reason }))
    .sort((a, b) => compareTexts(a.vm_hash, b.vm_hash));
}

export function planView(plan: Plan, period: PeriodView) {
  const nodes: Record<string, unknown> = {};
  for (const [nodeId, instances] of groupByNode(plan))
    nodes[nodeId] = { persistent_vms: [], instances, on_demand_vms: [], jobs: [] };
  return { period, plan: nodes, waiting: listWaiting(plan) };
}

function nodeRef(nodeId: string, view: View): NodeRef {
  const node = view.nodes.get(nodeId);
  const prefix = node?.ipv6Prefix ?? null;
  return { node_id: nodeId, url: node?.url ?? null, ipv6: prefix, supports_ipv6: prefix !== null };
}

export function allocationView(
  instanceId: string,
  placement: Placement & { nodeId: string },
  view: View,
  period: PeriodView,
) {
  return {
    vm_hash: instanceId,
    vm_type: 'instance',
    vm_ipv6: placement.ipv6 === '' ? null : placement.ipv6,
    period,
    node: nodeRef(placement.nodeId, view),
    reason: placement.reason,
  };
}

function nodeView(load: NodeLoad, instances: number, view: View) {
  const { node, limits, used, unusable } = load;
  return {
    ...nodeRef(node.nodeId, view),
    address: node.address,
    version: node.version,
    features: node.features,
    capacity: resourcesView(node.capacity),
    limits: resourcesView(limits),
    used: resourcesView(used),
    free: resourcesView(freeOf(load)),
    instances,
    healthy: unusable === null,
    reason: unusable,
    announced_at: Math.floor(node.announcedAtMs / 1000),
  };
}

export function nodesView(plan: Plan, view: View) {
  const groups = groupByNode(plan);
  const nodes = [...plan.loads.values()].sort((a, b) => compareTexts(a.node.nodeId, b.node.nodeId));
  return { nodes: nodes.map((load) => nodeView(load, groups.get(load.node.nodeId)?.length ?? 0, view)) };
}
