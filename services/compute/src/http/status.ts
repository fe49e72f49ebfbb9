import { answer, cached, type Handlers, VERSION } from '@skerry/kit';
import type { NODE_API } from '@skerry/protocol/api/compute/node';
import { type Probes, readWayOut } from '../host/way-out.ts';
import { configView, type NodeFacts } from './views.ts';

export interface StatusSources {
  readonly facts: () => Promise<NodeFacts>;
  readonly announceUrl: () => string;
  readonly probes: Probes;
  /** Whether an instance of this node answers at its IPv6; null where none runs. */
  readonly reachesInstance: () => Promise<boolean | null>;
}

/** Each asking goes out to others: however often it is asked for, they are not asked more often. */
const KEEP_MS = 15_000;

type StatusHandlers = Pick<
  Handlers<typeof NODE_API>,
  'getNodeConfig' | 'checkVersion' | 'checkHost' | 'checkIpv6'
>;

/** `GET /status/...`: whether this node does what a compute node does, each with its reason. */
export function statusHandlers(sources: StatusSources): StatusHandlers {
  const { facts, announceUrl, probes, reachesInstance } = sources;
  const wayOut = cached(KEEP_MS, async () => {
    const [ipv4, ipv6] = await Promise.all([
      readWayOut(4, probes, announceUrl()),
      readWayOut(6, probes, announceUrl()),
    ]);
    return { ipv4, ipv6 };
  });
  const instances = cached(KEEP_MS, reachesInstance);
  return {
    getNodeConfig: async () => configView(await facts()),
    checkVersion({ query: { reference } }) {
      const isCurrent = compareVersions(VERSION, reference) >= 0;
      const text = isCurrent
        ? `Up-to-date: version ${VERSION} >= ${reference}`
        : `Outdated: version ${VERSION} < ${reference}`;
      return answer(isCurrent ? 200 : 403, text, { 'content-type': 'text/plain' });
    },
    async checkHost() {
      const result = await wayOut();
      const isRight = [result.ipv4, result.ipv6].every(({ egress, dns, domain }) => egress && dns && domain);
      return answer(isRight ? 200 : 503, result);
    },
    checkIpv6: async () => ({ host: (await wayOut()).ipv6.egress, vm: (await instances()) === true }),
  };
}

/** Negative where the first is older. Parts that are missing are 0; what follows the numbers is not compared. Pure. */
export function compareVersions(one: string, other: string): number {
  const partsOf = (text: string) =>
    (/^v?([0-9.]+)/.exec(text)?.[1] ?? '0').split('.').map((part) => Number(part) || 0);
  const [first, second] = [partsOf(one), partsOf(other)];
  for (let index = 0; index < Math.max(first.length, second.length); index++) {
    const difference = (first[index] ?? 0) - (second[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
