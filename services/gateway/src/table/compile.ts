import { hostnameOf, type ItemHash } from '@skerry/protocol';
import { type Instance, isRoutable, precedes } from './instance.ts';

/** Whose a host name is, and where it leads. */
export interface NamedRoute {
  readonly instanceHash: ItemHash;
  readonly ipv6: string | null;
  readonly active: boolean;
  readonly proxyHeader: boolean;
}

export const fullHostname = (subdomain: string, domain: string) => `${subdomain}.${domain}`;

export const routeOf = (holder: Instance): NamedRoute => ({
  instanceHash: holder.hash,
  ipv6: holder.ipv6,
  active: isRoutable(holder),
  proxyHeader: holder.proxyHeader,
});

/**
 * The whole table, by whole host name. Of instances whose hashes begin with the same 44 bits the first by `precedes` has the
 * name; the order in which they are given does not matter.
 */
export function compile(instances: Iterable<Instance>, domain: string): Map<string, NamedRoute> {
  const holders = new Map<string, Instance>();
  for (const instance of instances) {
    const hostname = fullHostname(hostnameOf(instance.hash), domain);
    const holder = holders.get(hostname);
    if (!holder || precedes(instance, holder)) holders.set(hostname, instance);
  }
  return new Map(Array.from(holders, ([hostname, holder]) => [hostname, routeOf(holder)]));
}
