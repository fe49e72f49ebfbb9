import type { ComputeScore, CoreScore, Resources, SchedulerNode } from '../data/answers.ts';
import { count } from './format.ts';

/** A node, of whatever is known of it: a monitor scores it, a scheduler uses it. */
export interface NodeRow {
  readonly id: string;
  readonly kind: 'core' | 'compute';
  readonly url: string | null;
  readonly version: string | null;
  readonly capacity: Resources | null;
  readonly free: Resources | null;
  readonly instances: number | null;
  /** Whether it gets new instances; null where no scheduler says. */
  readonly isHealthy: boolean | null;
  readonly reason: { readonly code: string; readonly message: string } | null;
  readonly score: ComputeScore | CoreScore | null;
  readonly scheduler: SchedulerNode | null;
}

interface Known {
  readonly scheduled: readonly SchedulerNode[];
  readonly compute: readonly ComputeScore[];
  readonly core: readonly CoreScore[];
}

/** Every node that anybody tells of, each once, in order of its id. */
export function mergeNodes({ scheduled, compute, core }: Known): NodeRow[] {
  const byId = new Map(scheduled.map((one) => [one.node_id, one]));
  const scores = new Map(compute.map((one) => [one.node_id, one]));
  const ids = new Set([...byId.keys(), ...scores.keys()]);
  const computing = [...ids].map((id): NodeRow => {
    const [scheduler, score] = [byId.get(id), scores.get(id)];
    return {
      id,
      kind: 'compute',
      url: scheduler?.url ?? null,
      version: scheduler?.version ?? null,
      capacity: scheduler?.limits ?? null,
      free: scheduler?.free ?? null,
      instances: scheduler?.instances ?? null,
      isHealthy: scheduler?.healthy ?? null,
      reason: scheduler?.leaving ?? scheduler?.reason ?? null,
      score: score ?? null,
      scheduler: scheduler ?? null,
    };
  });
  const cores = core.map((score): NodeRow => {
    const absent = { url: null, version: null, capacity: null, free: null, instances: null };
    return {
      id: score.node_id,
      kind: 'core',
      ...absent,
      isHealthy: null,
      reason: null,
      score,
      scheduler: null,
    };
  });
  return [...cores, ...computing].sort((one, other) => (one.id < other.id ? -1 : 1));
}

/** Codes of scores in words (packages/protocol/src/scoring/scores.ts). */
const CODES: Readonly<Record<number, string>> = {
  1001: 'no IPv4 address is known',
  1002: 'no IPv6 range is known',
  1003: 'its IPv4 address changed often',
  1004: 'its IPv6 range changed often',
  1005: 'it shares its address with an older node',
  1006: 'dead: nothing proved it alive',
  1007: 'inactive: nothing proved it alive lately',
};
export const meaningOfCode = (code: number) => CODES[code] ?? `code ${code}`;

export interface Room {
  readonly total: Resources;
  readonly free: Resources;
}

/** All of one kind of room at nodes that say what they have; undefined: none says. */
export function roomAt(
  nodes: readonly Pick<NodeRow, 'free' | 'capacity'>[],
  pick: (resources: Resources) => number,
): { readonly free: number; readonly total: number } | undefined {
  const known = nodes.flatMap(({ free, capacity }) => (free && capacity ? [{ free, capacity }] : []));
  if (known.length === 0) return undefined;
  const sum = (values: readonly number[]) => values.reduce((all, one) => all + one, 0);
  return {
    free: sum(known.map(({ free }) => pick(free))),
    total: sum(known.map(({ capacity }) => pick(capacity))),
  };
}

/** Room of all nodes that take new instances. */
export function roomOf(nodes: readonly SchedulerNode[]): Room {
  const sum = (pick: (node: SchedulerNode) => Resources): Resources =>
    nodes
      .filter(({ healthy }) => healthy)
      .map(pick)
      .reduce(
        (all, one) => ({
          cpu: all.cpu + one.cpu,
          memory_mib: all.memory_mib + one.memory_mib,
          disk_gib: all.disk_gib + one.disk_gib,
        }),
        { cpu: 0, memory_mib: 0, disk_gib: 0 },
      );
  return { total: sum(({ limits }) => limits), free: sum(({ free }) => free) };
}

/** What stands where the nodes would: that none is known can be said only by whoever was answered. */
export function placeOfNodes(
  count: number,
  { isAsking, hasFailed }: { readonly isAsking: boolean; readonly hasFailed: boolean },
): { readonly title: string; readonly shows: 'rows' | 'loading' | 'failure' | 'empty' } {
  if (count > 0) return { title: count === 1 ? '1 node' : `${count} nodes`, shows: 'rows' };
  if (isAsking) return { title: 'Nodes', shows: 'loading' };
  return hasFailed ? { title: 'Nodes', shows: 'failure' } : { title: '0 nodes', shows: 'empty' };
}

/** `3 running, 1 failed`; and of how many, where these are not all. @param phases of machines, the newest first */
export function phasesText(phases: readonly string[], total: number): string {
  const [running, failed] = ['running', 'failed'].map(
    (phase) => phases.filter((one) => one === phase).length,
  );
  const of = total > phases.length ? ` of the newest ${count(phases.length)}` : '';
  return `${count(running!)}${of} running${failed! > 0 ? `, ${count(failed!)} failed` : ''}`;
}
