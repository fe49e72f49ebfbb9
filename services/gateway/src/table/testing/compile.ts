import { hostnameOf } from '@skerry/protocol';
import { type Instance, precedes } from '../instance.ts';
import { fullHostname, type NamedRoute, routeOf } from '../named-route.ts';

/**
 * What the table holds, made at once, to compare it with: by whole host name. Of instances whose hashes begin with the same 44 bits the first by `precedes` has the
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
