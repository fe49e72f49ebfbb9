import type { Snapshot } from '../controller.ts';
import type { NodeLoad } from '../load.ts';
import { listWaiting } from './wire.ts';

export interface StatusInput {
  readonly snapshot: Snapshot | undefined;
  readonly coreFailure: string | null;
  /** Of the outbox: decisions without effect, and the last failure to publish. */
  readonly trouble: { readonly unconfirmed: number; readonly failure: string | null };
  readonly address: string;
}

/** Prefixes that more than one node announces: an address there leads to one of them only. */
function listSharedPrefixes(loads: Iterable<NodeLoad>): string[] {
  const seen = new Set<string>();
  const shared = new Set<string>();
  for (const { node } of loads) {
    if (node.ipv6Prefix === null) continue;
    if (seen.has(node.ipv6Prefix)) shared.add(node.ipv6Prefix);
    seen.add(node.ipv6Prefix);
  }
  return [...shared].sort();
}

function listNetworkReasons({ plan }: Snapshot): string[] {
  const loads = [...plan.loads.values()];
  const waiting = listWaiting(plan).length;
  const unusable = loads.filter((load) => load.unusable !== null).length;
  const reasons: string[] = [];
  if (loads.length === 0) reasons.push('no compute node is known');
  if (unusable > 0)
    reasons.push(`${unusable} of ${loads.length} compute nodes can take no instance (see /api/v0/nodes)`);
  if (waiting > 0)
    reasons.push(`${waiting} of ${plan.placements.size} instances have no node (see /api/v0/plan)`);
  for (const prefix of listSharedPrefixes(loads))
    reasons.push(`more than one compute node announces ${prefix}`);
  return reasons;
}

/** Everything that keeps the scheduler or the network from being in order, each as a sentence. */
export function listReasons(input: StatusInput): string[] {
  const { snapshot, coreFailure, trouble, address } = input;
  const reasons: string[] = [];
  if (coreFailure !== null) reasons.push(`the core node cannot be read: ${coreFailure}`);
  else if (!snapshot) reasons.push('the core node was not read yet');
  if (trouble.failure !== null) reasons.push(`decisions wait to be published: ${trouble.failure}`);
  if (trouble.unconfirmed > 0)
    reasons.push(
      `the core node took ${trouble.unconfirmed} decisions without effect; it may not trust this scheduler, ${address}`,
    );
  return snapshot ? [...reasons, ...listNetworkReasons(snapshot)] : reasons;
}

export function statusView(input: StatusInput) {
  const reasons = listReasons(input);
  const plan = input.snapshot?.plan;
  const loads = [...(plan?.loads.values() ?? [])];
  const total = plan?.placements.size ?? 0;
  const waiting = plan ? listWaiting(plan).length : 0;
  return {
    status: reasons.length === 0 ? 'ok' : 'degraded',
    reasons,
    address: input.address,
    nodes: { total: loads.length, healthy: loads.filter((load) => load.unusable === null).length },
    instances: { total, placed: total - waiting, waiting },
  };
}
