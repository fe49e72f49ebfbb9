import { hostnameOf, type ItemHash } from '@skerry/protocol';
import type { Route, RouteChange } from '../dataplane/port.ts';
import { type Instance, isRoutable, precedes } from './instance.ts';
import { fullHostname, type NamedRoute, routeOf } from './named-route.ts';

/** Those that share a name, in the order in which they may have it. */
function insertInOrder(named: readonly Instance[], instance: Instance): Instance[] {
  const at = named.findIndex((other) => precedes(instance, other));
  return at < 0 ? [...named, instance] : named.toSpliced(at, 0, instance);
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
  readonly #named = new Map<string, readonly Instance[]>();
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

  /** Those that share a name, the one that has it first. */
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
    const subdomain = hostnameOf(instance.hash);
    const others = this.listNamed(subdomain).filter((other) => other.hash !== instance.hash);
    this.#instances.set(instance.hash, instance);
    return this.#rename(subdomain, insertInOrder(others, instance));
  }

  remove(hash: ItemHash): RouteChange[] {
    if (!this.#instances.delete(hash)) return [];
    const subdomain = hostnameOf(hash);
    return this.#rename(
      subdomain,
      this.listNamed(subdomain).filter((other) => other.hash !== hash),
    );
  }

  #rename(subdomain: string, named: readonly Instance[]): RouteChange[] {
    const hostname = fullHostname(subdomain, this.domain);
    const before = routeFor(hostname, this.listNamed(subdomain));
    const after = routeFor(hostname, named);
    if (named.length === 0) this.#named.delete(subdomain);
    else this.#named.set(subdomain, named);
    if (named.length > 1) this.#shared.add(subdomain);
    else this.#shared.delete(subdomain);
    this.#routeCount += Number(after.ipv6 !== null) - Number(before.ipv6 !== null);
    return isSameRoute(before, after) ? [] : [after];
  }
}
