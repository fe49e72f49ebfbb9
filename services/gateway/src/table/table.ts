import { hostnameOf, type ItemHash } from '@skerry/protocol';
import type { Route, RouteChange } from '../dataplane/port.ts';
import { type Instance, isRoutable, precedes } from './instance.ts';
import { fullHostname, type NamedRoute, routeOf } from './named-route.ts';

/**
 * Where an instance is, or would be, among those that share its name, in the order in which they may have it: found by halving, since a core
 * node may name a hundred thousand that nobody made.
 */
function placeOf(named: readonly Instance[], instance: Instance): number {
  let [from, to] = [0, named.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (precedes(named[middle]!, instance)) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** Where a name leads; the header is named only where it is wanted. */
function routeFor(hostname: string, [holder]: readonly Instance[]): RouteChange {
  if (!holder || !isRoutable(holder)) return { hostname, ipv6: null };
  const { ipv6, proxyHeader } = holder;
  return proxyHeader ? { hostname, ipv6, proxyHeader } : { hostname, ipv6 };
}

const isSameRoute = (one: RouteChange, other: RouteChange) =>
  one.ipv6 === other.ipv6 && one.proxyHeader === other.proxyHeader;

/**
 * The table that `compile` gives, kept up to date one instance at a time. Each change says which routes it moved: at most one,
 * also when a name passes on to the next of those that share it.
 */
export class InstanceTable {
  readonly domain: string;
  readonly #instances = new Map<string, Instance>();
  /** By subdomain; the first has the name. Nearly always there is one. */
  readonly #named = new Map<string, Instance[]>();
  /** Those of them that several have. */
  readonly #shared = new Set<string>();
  #routeCount = 0;

  constructor(domain: string) {
    this.domain = domain;
  }

  get instanceCount(): number {
    return this.#instances.size;
  }

  get routeCount(): number {
    return this.#routeCount;
  }

  find(hash: ItemHash): Instance | undefined {
    return this.#instances.get(hash);
  }

  /** Those that share a name, the one that has it first; as of now, until the next change. */
  listNamed(subdomain: string): readonly Instance[] {
    return this.#named.get(subdomain) ?? [];
  }

  get nameCount(): number {
    return this.#named.size;
  }

  get sharedCount(): number {
    return this.#shared.size;
  }

  /** Every name with those that share it, in the order in which the names came. */
  names(): Iterable<readonly [string, readonly Instance[]]> {
    return this.#named.entries();
  }

  /** Names that several share. */
  sharedNames(): Iterable<string> {
    return this.#shared;
  }

  instances(): Iterable<Instance> {
    return this.#instances.values();
  }

  *routes(): Generator<Route> {
    for (const [subdomain, named] of this.#named) {
      const route = routeFor(fullHostname(subdomain, this.domain), named);
      if (route.ipv6 !== null) yield route as Route;
    }
  }

  compiled(): Map<string, NamedRoute> {
    return new Map(
      Array.from(this.#named, ([subdomain, named]) => [
        fullHostname(subdomain, this.domain),
        routeOf(named[0]!),
      ]),
    );
  }

  put(instance: Instance): RouteChange[] {
    const before = this.#instances.get(instance.hash);
    this.#instances.set(instance.hash, instance);
    return this.#rename(instance.hash, before, instance);
  }

  remove(hash: ItemHash): RouteChange[] {
    const before = this.#instances.get(hash);
    return this.#instances.delete(hash) ? this.#rename(hash, before, undefined) : [];
  }

  #rename(hash: ItemHash, gone: Instance | undefined, come: Instance | undefined): RouteChange[] {
    const subdomain = hostnameOf(hash);
    const hostname = fullHostname(subdomain, this.domain);
    const named = this.#named.get(subdomain) ?? [];
    const before = routeFor(hostname, named);
    if (gone) named.splice(placeOf(named, gone), 1);
    if (come) named.splice(placeOf(named, come), 0, come);
    const after = routeFor(hostname, named);
    if (named.length === 0) this.#named.delete(subdomain);
    else this.#named.set(subdomain, named);
    if (named.length > 1) this.#shared.add(subdomain);
    else this.#shared.delete(subdomain);
    this.#routeCount += Number(after.ipv6 !== null) - Number(before.ipv6 !== null);
    return isSameRoute(before, after) ? [] : [after];
  }
}
