import { parseIpv6Prefix } from '@skerry/protocol';
import ipaddr from 'ipaddr.js';

/** An interface as `ip -j address` shows it, as far as it matters here. */
export interface ShownInterface {
  readonly ifname: string;
  readonly addr_info?: readonly {
    readonly family: string;
    readonly local: string;
    readonly prefixlen: number;
  }[];
}

const PREFIX_LENGTH = 64;

/**
 * The interface where neighbours look for the whole /64 on the link, because one of its addresses is in it: there the node
 * has to answer for its guests (RFC 4389). undefined where the prefix is routed to this machine, which needs nothing. Pure.
 */
export function findOnLinkInterface(
  interfaces: readonly ShownInterface[],
  prefix: string,
  isOurs: (name: string) => boolean,
): string | undefined {
  return interfaces.find(
    ({ ifname, addr_info: addresses = [] }) =>
      ifname !== 'lo' &&
      !isOurs(ifname) &&
      addresses.some(
        ({ family, local, prefixlen }) =>
          family === 'inet6' && prefixlen <= PREFIX_LENGTH && isInPrefix(local, prefix),
      ),
  )?.ifname;
}

/** Whether an IPv6 address is one of a node's /64. */
export function isInPrefix(address: string, prefix: string): boolean {
  return ipaddr.IPv6.parse(address).match(ipaddr.IPv6.parseCIDR(parseIpv6Prefix(prefix)));
}

/** The node's own address towards the rest of IPv4, from `ip -j -4 route get`; undefined where there is no way out. */
export function parseSourceAddress(json: string): string | undefined {
  const [route] = JSON.parse(json || '[]') as { prefsrc?: string }[];
  return route?.prefsrc;
}
