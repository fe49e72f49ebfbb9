import { ownerOfUrl } from '@skerry/kit';
import type { Service } from '../history/store.ts';

/**
 * So many of the services, where not all are shown: those of the lowest rank, and of one rank the first of each owner (a domain, an IPv4 /24,
 * an IPv6 /48) before the second of any, so that who announces thousands of nodes drives nobody else's out. Pure.
 *
 * @param services whose order counts among those of one owner and rank
 */
export function chooseFairly(
  services: readonly Service[],
  max: number,
  rankOf: (service: Service) => number,
): Service[] {
  if (services.length <= max) return [...services];
  const counts = new Map<string, number>();
  const placed = services.map((service) => {
    const rank = rankOf(service);
    const key = `${rank} ${ownerOfUrl(service.target.url)}`;
    const nth = counts.get(key) ?? 0;
    counts.set(key, nth + 1);
    return { service, rank, nth };
  });
  return placed
    .toSorted((a, b) => a.rank - b.rank || a.nth - b.nth)
    .slice(0, max)
    .map(({ service }) => service);
}
