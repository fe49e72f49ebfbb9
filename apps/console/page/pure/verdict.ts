import type { Health, SchedulerNode, SchedulerStatus, ScoresMessage, Service } from '../data/answers.ts';
import type { IndexedNetworks, Peers } from '../data/answers-of-services.ts';
import { score } from './format.ts';
import { findFalls } from './scores/falls.ts';

/** Something that is not as it should be. */
export interface Problem {
  /** What it is about: a service, a node. */
  readonly subject: string;
  readonly why: string;
  /** Unix milliseconds; null where nobody says. */
  readonly sinceMs: number | null;
  readonly node?: string;
}

interface Known {
  readonly health: Health | undefined;
  readonly nodes: readonly SchedulerNode[];
  readonly services: readonly Service[];
  readonly scheduler: SchedulerStatus | undefined;
  /** Newest first. */
  readonly scores: readonly ScoresMessage[];
  /** When they were told, Unix milliseconds. */
  readonly scoresMs: number;
  readonly peers: Peers['peers'];
  readonly chains: IndexedNetworks['networks'];
}

const timeOf = (date: string | null) => {
  const ms = date === null ? Number.NaN : Date.parse(date);
  return Number.isNaN(ms) ? null : ms;
};

function problemsOfHealth(health: Health | undefined): Problem[] {
  if (!health || health.status === 'ok') return [];
  const bad = Object.entries(health.checks).filter(([, { status }]) => status !== 'ok');
  if (bad.length === 0)
    return [{ subject: 'core node', why: health.reason ?? health.status, sinceMs: health.since_ms }];
  return bad.map(([name, { status, reason, since_ms }]) => ({
    subject: `core node, ${name}`,
    why: reason ?? status,
    sinceMs: since_ms,
  }));
}

/** Without words of its own a service that is down does not answer. */
const problemsOfServices = (services: readonly Service[]): Problem[] =>
  services
    .filter(({ online }) => !online)
    .map(({ name, issue, last_success }) => ({
      subject: name,
      why: issue ?? 'does not answer',
      sinceMs: timeOf(last_success),
    }));

function problemsOfScheduler(status: SchedulerStatus | undefined): Problem[] {
  const told = status?.problems ?? status?.reasons.map((message) => ({ message, since_ms: null })) ?? [];
  return told.map(({ message, since_ms }) => ({ subject: 'scheduler', why: message, sinceMs: since_ms }));
}

const problemsOfNodes = (nodes: readonly SchedulerNode[]): Problem[] =>
  nodes
    .filter(({ healthy, leaving }) => !healthy || leaving)
    .map(({ node_id, reason, leaving, wrong_since_ms }) => ({
      subject: 'compute node',
      why: (leaving ?? reason)?.message ?? 'gets no new machines',
      sinceMs: wrong_since_ms,
      node: node_id,
    }));

const PEERS_LOST = ['stalled', 'failing', 'banned'];
const whyLost = ({ state, failure }: Known['peers'][number]): string => {
  if (state === 'banned') return 'sent too much that nobody signed';
  return state === 'stalled' ? 'does not bring what it says to have' : `does not keep in step (${failure})`;
};
const problemsOfPeers = (peers: Known['peers']): Problem[] =>
  peers
    .filter(({ state }) => PEERS_LOST.includes(state))
    .map((peer) => ({ subject: `peer ${peer.name}`, why: whyLost(peer), sinceMs: peer.synced_ms }));

const CHAINS_STUCK = ['stalled', 'halted'];
/** Archives are read of the chains that are indexed: one that stands still confirms nothing. */
const problemsOfChains = (chains: Known['chains']): Problem[] =>
  chains
    .filter(({ state }) => CHAINS_STUCK.includes(state))
    .map(({ network, state, lag, halt, progress_at }) => ({
      subject: `chain ${network}`,
      why:
        halt?.message ??
        `its archives and events are not read on: ${state}${lag === null ? '' : `, ${lag} blocks behind`}`,
      sinceMs: progress_at * 1_000,
    }));

const problemsOfScores = (scores: readonly ScoresMessage[], nowMs: number): Problem[] =>
  findFalls(scores, nowMs).map(({ node, kind, from, to, sinceMs }) => ({
    subject: `${kind} node`,
    why:
      to === null
        ? `is not scored any more; it had ${score(from)}`
        : `its score fell from ${score(from)} to ${score(to)}`,
    sinceMs,
    node,
  }));

/** What is wrong in a network, the services first. A machine that fails may be its owner's own doing: it counts elsewhere. */
export const findProblems = ({
  health,
  nodes,
  services,
  scheduler,
  scores,
  scoresMs,
  peers,
  chains,
}: Known): Problem[] => [
  ...problemsOfHealth(health),
  ...problemsOfServices(services),
  ...problemsOfScheduler(scheduler),
  ...problemsOfNodes(nodes),
  ...problemsOfPeers(peers),
  ...problemsOfChains(chains),
  ...problemsOfScores(scores, scoresMs),
];

/** Who was asked what is wrong, and did not answer. */
interface Silent {
  /** Answers of the core node itself, and of other services, that did not come. */
  readonly ofCore: number;
  readonly ofServices: number;
}

/** What is read first. A network is well where all that tell of it were heard, and none names a problem. */
export function wellness(problems: number, { ofCore, ofServices }: Silent) {
  const isWell = problems === 0 && ofCore === 0 && ofServices === 0;
  const title = isWell
    ? 'The network is well.'
    : problems === 1
      ? 'One thing is wrong.'
      : problems > 1
        ? `${problems} things are wrong.`
        : `${ofCore > 0 ? 'The core node' : 'A service'} does not answer.`;
  return { isWell, title };
}
