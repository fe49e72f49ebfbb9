import type { Since } from '@skerry/kit';
import type { SchedulerStatusView } from '@skerry/protocol/api/scheduler';
import type { Static } from '@skerry/protocol/type';
import type { Snapshot } from '../controller.ts';
import type { Peer, Standpoint } from '../leadership.ts';
import { largestOf, type NodeLoad } from '../planning/load.ts';
import { agedWords, isDistrust } from '../planning/trust.ts';

export interface StatusInput {
  readonly snapshot: Snapshot | undefined;
  readonly coreFailure: string | null;
  /** Why nothing is to be decided by what was read of the core node; null where it may be. */
  readonly lag: string | null;
  /** Most nodes are out of reach. */
  readonly isCutOff: boolean;
  /** The time of the newest measurement behind scores that are too old to count, Unix milliseconds; null where they count. */
  readonly scoresOutdatedMs: number | null;
  /** Of the outbox: decisions without effect, and the last failure to publish. */
  readonly trouble: { readonly unconfirmed: number; readonly failure: string | null };
  readonly address: string;
  readonly standpoint: Standpoint;
  readonly peers: readonly Peer[];
  /** Of problems, by code; of shared prefixes, by prefix. */
  readonly since: Since;
}

/** Something that is not in order, as a sentence. */
interface Problem {
  readonly code: string;
  readonly message: string;
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

/** What strangers announce says nothing of the network's state. */
const listTrusted = (loads: Iterable<NodeLoad>) =>
  [...loads].filter(({ standing, instances }) => instances.size > 0 || !isDistrust(standing.unusable));

function listNetworkProblems({ planner }: Snapshot): Problem[] {
  const loads = listTrusted(planner.loads.values());
  const { waiting, leaving, oversized } = planner.count(largestOf(loads));
  const unusable = loads.filter(({ standing }) => standing.unusable !== null).length;
  const problems: Problem[] = [];
  const tell = (code: string, message: string) => problems.push({ code, message });
  if (loads.length === 0) tell('NO_NODES', 'no listed or measured compute node is known');
  if (unusable > 0)
    tell(
      'NODES_UNUSABLE',
      `${unusable} of ${loads.length} compute nodes can accept no instance (see /api/v0/nodes)`,
    );
  // Anybody may ask for more than any node has: that says as little.
  const lacking = waiting - oversized;
  if (lacking > 0)
    tell('INSTANCES_WAITING', `${lacking} of ${planner.size} instances have no node (see /api/v0/plan)`);
  if (leaving > 0)
    tell('INSTANCES_STAY', `${leaving} instances should leave their nodes, but no other node has room`);
  for (const prefix of listSharedPrefixes(loads))
    tell(`PREFIX_SHARED ${prefix}`, `more than one compute node announces ${prefix}`);
  return problems;
}

/** Everything that keeps the scheduler or the network from being in order. */
function listProblems(input: StatusInput): Problem[] {
  const { snapshot, coreFailure, lag, isCutOff, scoresOutdatedMs, trouble, address } = input;
  const problems: Problem[] = [];
  const tell = (code: string, message: string) => problems.push({ code, message });
  if (coreFailure !== null) tell('CORE_UNREADABLE', `cannot read the core node: ${coreFailure}`);
  else if (!snapshot) tell('CORE_UNREAD', 'the core node has not been read yet');
  else if (lag !== null) tell('CORE_BEHIND', `nothing is decided for now: ${lag}`);
  if (isCutOff && snapshot && snapshot.view.nodes.size > 0)
    tell('CUT_OFF', 'most compute nodes are unreachable, so none counts as dead');
  if (scoresOutdatedMs !== null)
    tell(
      'SCORES_OUTDATED',
      `no node counts as measured, and programs run as before: the newest scores are ${agedWords(scoresOutdatedMs)}`,
    );
  if (trouble.failure !== null)
    tell('UNPUBLISHED', `decisions are waiting to be published: ${trouble.failure}`);
  if (trouble.unconfirmed > 0)
    tell(
      'WITHOUT_EFFECT',
      `the core node stored ${trouble.unconfirmed} decisions without effect; it may not trust this scheduler, ${address}`,
    );
  return snapshot ? [...problems, ...listNetworkProblems(snapshot)] : problems;
}

/** What is not in order now, and since when. Whoever asks from time to time knows the times. */
export function noteProblems(
  input: StatusInput,
): NonNullable<Static<typeof SchedulerStatusView>['problems']> {
  const { since } = input;
  const problems = listProblems(input);
  const codes = new Set(problems.map(({ code }) => code));
  since.keepOnly((code) => codes.has(code));
  return problems.map(({ code, message }) => ({
    code: code.split(' ', 1)[0]!,
    message,
    since_ms: since.note(code, true)!,
  }));
}

export function statusView(input: StatusInput): Static<typeof SchedulerStatusView> {
  const { snapshot, standpoint, peers, address } = input;
  const problems = noteProblems(input);
  const planner = snapshot?.planner;
  const loads = listTrusted(planner?.loads.values() ?? []);
  const total = planner?.size ?? 0;
  const { waiting, leaving } = planner?.count(largestOf(loads)) ?? { waiting: 0, leaving: 0 };
  return {
    status: problems.length === 0 ? 'ok' : 'degraded',
    reasons: problems.map(({ message }) => message),
    problems,
    address,
    leadership: {
      role: standpoint.role,
      since_ms: standpoint.sinceMs,
      can_lead: standpoint.canLead,
      peers: peers.map(({ url, seenAtMs, standpoint: theirs }) => ({
        url,
        role: theirs?.role ?? null,
        address: theirs?.address ?? null,
        seen_at_ms: seenAtMs ?? null,
      })),
    },
    nodes: {
      total: loads.length,
      healthy: loads.filter(({ standing }) => standing.unusable === null).length,
    },
    instances: { total, placed: total - waiting, waiting, leaving },
  };
}
