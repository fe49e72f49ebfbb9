import type {
  AllocationView,
  CandidateView,
  ExplanationView,
  NodeRefView,
  NodeView,
  PeriodView,
  ResourcesView,
} from '@skerry/protocol/api/scheduler';
import type { Static } from '@skerry/protocol/type';
import type { Snapshot } from '../controller.ts';
import { type Candidate, listCandidates } from '../planning/explain.ts';
import { freeOf, type NodeLoad, weightOf } from '../planning/load.ts';
import type { Planner } from '../planning/planner.ts';
import type { Instance, Placement, Resources, View } from '../view.ts';

const compareTexts = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
const isoOf = (ms: number) => new Date(ms).toISOString();

export function periodView(checkedAtMs: number, durationSeconds: number): PeriodView {
  return { start_timestamp: isoOf(checkedAtMs), duration_seconds: durationSeconds };
}

const resourcesView = ({ cpu, memoryMib, diskGib }: Resources): ResourcesView => ({
  cpu,
  memory_mib: memoryMib,
  disk_gib: diskGib,
});

const loadsInOrder = (planner: Planner) =>
  [...planner.loads.values()].sort((a, b) => compareTexts(a.node.nodeId, b.node.nodeId));

/** Instances on nodes that this scheduler does not place on, by node. */
function groupForeign({ planner, view }: Snapshot): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const nodeId of view.holders.keys()) if (!planner.loads.has(nodeId)) groups.set(nodeId, []);
  if (groups.size === 0) return groups;
  for (const instanceId of planner.instanceIds) {
    const { nodeId } = planner.get(instanceId)!;
    if (nodeId !== null) groups.get(nodeId)?.push(instanceId);
  }
  return groups;
}

/** What a plan says, as it is when it is asked for: planning goes on while the text is read. */
interface PlanContent {
  readonly nodes: readonly (readonly [nodeId: string, instanceIds: readonly string[]])[];
  readonly waiting: ReturnType<Planner['listWaiting']>;
}

const planContentOf = (snapshot: Snapshot): PlanContent => ({
  nodes: [
    ...loadsInOrder(snapshot.planner).map(({ node, instances }) => [node.nodeId, [...instances]] as const),
    ...[...groupForeign(snapshot)].filter(([, ids]) => ids.length > 0),
  ],
  waiting: snapshot.planner.listWaiting(),
});

/** The plan piece by piece, as JSON: of a million instances it is 70 MB. */
export const planText = (snapshot: Snapshot, period: PeriodView): Generator<string> =>
  writePlan(planContentOf(snapshot), period);

function* writePlan({ nodes, waiting }: PlanContent, period: PeriodView): Generator<string> {
  yield `{"period":${JSON.stringify(period)},"plan":{`;
  let comma = '';
  for (const [nodeId, ids] of nodes) {
    const lists = { persistent_vms: [], instances: ids.toSorted(compareTexts), on_demand_vms: [], jobs: [] };
    yield `${comma}${JSON.stringify(nodeId)}:${JSON.stringify(lists)}`;
    comma = ',';
  }
  yield '},"waiting":[';
  comma = '';
  for (const { instanceId, reason } of waiting) {
    yield `${comma}${JSON.stringify({ vm_hash: instanceId, reason })}`;
    comma = ',';
  }
  yield ']}';
}

function nodeRef(nodeId: string, view: View): NodeRefView {
  const node = view.nodes.get(nodeId);
  const prefix = node?.ipv6Prefix ?? null;
  return { node_id: nodeId, url: node?.url ?? null, ipv6: prefix, supports_ipv6: prefix !== null };
}

export function allocationView(
  instanceId: string,
  placement: Placement & { nodeId: string },
  view: View,
  period: PeriodView,
): Static<typeof AllocationView> {
  return {
    vm_hash: instanceId,
    vm_type: 'instance',
    vm_ipv6: placement.ipv6 === '' ? null : placement.ipv6,
    period,
    node: nodeRef(placement.nodeId, view),
    reason: placement.reason,
  };
}

function nodeView(load: NodeLoad, { view, wrongSince }: Snapshot): NodeView {
  const { node, limits, used, standing } = load;
  return {
    ...nodeRef(node.nodeId, view),
    address: node.address,
    version: node.version,
    features: [...node.features],
    capacity: resourcesView(view.nodes.get(node.nodeId)?.capacity ?? node.capacity),
    limits: resourcesView(limits),
    used: resourcesView(used),
    free: resourcesView(freeOf(load)),
    instances: load.instances.size,
    healthy: standing.unusable === null,
    reason: standing.unusable,
    leaving: standing.leaving,
    wrong_since_ms: wrongSince(node.nodeId),
    trust: standing.trust,
    score: standing.score,
    weight: weightOf(load),
    announced_at: Math.floor(node.announcedAtMs / 1000),
  };
}

export const nodesView = (snapshot: Snapshot) => ({
  nodes: loadsInOrder(snapshot.planner).map((load) => nodeView(load, snapshot)),
});

const candidateView = ({ load, weight, freeShare, against }: Candidate): Static<typeof CandidateView> => ({
  node_id: load.node.nodeId,
  has_room: against === null,
  weight,
  free_share: freeShare,
  score: load.standing.score,
  free: resourcesView(freeOf(load)),
  trust: load.standing.trust,
  against,
});

/** Of an instance that is new: nothing was decided of it. */
export const NOTHING_CHOSEN = 'no node has been chosen yet';

function verdictOf(
  { planner }: Snapshot,
  { barred }: Instance,
  { nodeId, reason }: Placement,
): Static<typeof ExplanationView>['verdict'] {
  if (nodeId === null) return { code: 'WAITS', message: reason?.message ?? NOTHING_CHOSEN };
  const load = planner.loads.get(nodeId);
  if (!load) return { code: 'FOREIGN', message: 'this scheduler does not use its node' };
  const { leaving } = load.standing;
  if (leaving && barred)
    return { code: 'STAYS', message: `no node can start it, so it is moved to none: ${barred.message}` };
  if (leaving)
    return { code: 'LEAVES', message: `it should leave (${leaving.message}), but no other node has room` };
  const but = reason ? `; the node gets nothing new: ${reason.message}` : '';
  return { code: 'STAYS', message: `a placed instance stays on its node while the node stays${but}` };
}

/** Why an instance is where it is. @param candidatesMax nodes that are shown */
export function explanationView(
  snapshot: Snapshot,
  instanceId: string,
  placement: Placement,
  candidatesMax: number,
): Static<typeof ExplanationView> {
  const { planner, decisions } = snapshot;
  const instance = planner.getInstance(instanceId)!;
  const { list, counts } = listCandidates(planner.loads.values(), instance.needs, instance);
  return {
    vm_hash: instanceId,
    needs: resourcesView(instance.needs),
    created_at: instance.createdAt,
    node_id: placement.nodeId,
    vm_ipv6: placement.ipv6 === '' ? null : placement.ipv6,
    verdict: verdictOf(snapshot, instance, placement),
    decisions: decisions.list(instanceId).map(({ decidedAtMs, kind, from, placement: decided }) => ({
      decided_at: isoOf(decidedAtMs),
      kind,
      from,
      node_id: decided.nodeId,
      ipv6: decided.ipv6,
      reason: decided.reason,
    })),
    nodes: Object.fromEntries(counts),
    candidates: list.slice(0, candidatesMax).map(candidateView),
  };
}
