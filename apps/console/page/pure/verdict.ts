import type { Health, SchedulerNode, Service } from '../data/answers.ts';

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
  readonly schedulerReasons: readonly string[];
}

const timeOf = (date: string | null) => {
  const ms = date === null ? Number.NaN : Date.parse(date);
  return Number.isNaN(ms) ? null : ms;
};

function problemsOfHealth(health: Health | undefined): Problem[] {
  if (!health || health.status === 'ok') return [];
  const bad = Object.entries(health.checks).filter(([, { status }]) => status !== 'ok');
  if (bad.length === 0) return [{ subject: 'core node', why: health.reason ?? health.status, sinceMs: null }];
  return bad.map(([name, { status, reason }]) => ({
    subject: `core node, ${name}`,
    why: reason ?? status,
    sinceMs: null,
  }));
}

/** What is wrong in a network, the services first. A machine that fails may be its owner's own doing: it counts elsewhere. */
export function findProblems({ health, nodes, services, schedulerReasons }: Known): Problem[] {
  return [
    ...problemsOfHealth(health),
    ...services
      .filter(({ online }) => !online)
      .map(({ name, issue, last_success }) => ({
        subject: name,
        why: issue ?? 'does not answer',
        sinceMs: timeOf(last_success),
      })),
    ...schedulerReasons.map((why) => ({ subject: 'scheduler', why, sinceMs: null })),
    ...nodes
      .filter(({ healthy, leaving }) => !healthy || leaving)
      .map(({ node_id, reason, leaving }) => ({
        subject: 'compute node',
        why: (leaving ?? reason)?.message ?? 'gets no new machines',
        sinceMs: null,
        node: node_id,
      })),
  ];
}
