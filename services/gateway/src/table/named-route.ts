import type { ItemHash } from '@skerry/protocol';
import { type Instance, isRoutable } from './instance.ts';

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
