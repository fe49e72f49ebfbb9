import { AppError } from '@skerry/protocol';
import ipaddr from 'ipaddr.js';
import type { NetworkNames } from './names.ts';

/** What the firewall has to know of one guest. */
export interface GuestLink {
  readonly tap: string;
  /** The instance's own network, `.../124`. */
  readonly network: string;
  /** TCP ports that anyone may reach. */
  readonly allowedPorts: readonly number[];
}

const TAP = /^s[0-9a-f]{14}$/;
const PORT_MAX = 65_535;

/**
 * The node's whole table, for `nft -f`: one transaction takes the old one away and puts the new one in place, so no packet
 * sees half of it. No chain has a policy but accept, and every rule asks for one of the node's own taps first:
 * traffic of others, and other tables, are not touched.
 *
 * - To a guest, wherever from (the network, this machine, another guest): ICMPv6, the allowed TCP ports, and replies to
 *   connections that the guest began. The port is asked of every packet, not only of the first: a port that is taken
 *   back ends what was open.
 * - From a guest: only with a source address of its own network, and to this machine itself only ICMPv6 and replies.
 */
export function nodeRuleset(names: NetworkNames, guests: readonly GuestLink[]): string {
  for (const guest of guests) check(guest);
  const taps = `"${names.tapPrefix}*"`;
  const sources = guests.map(({ tap, network }) => `"${tap}" . ${network}`);
  const allowed = guests.flatMap(({ tap, allowedPorts }) =>
    [...new Set(allowedPorts)].map((port) => `"${tap}" . ${port}`),
  );
  return `${dropRuleset(names)}table inet ${names.table} {
  set sources {
    type ifname . ipv6_addr
    flags interval
${elements(sources)}  }
  set allowed {
    type ifname . inet_service
${elements(allowed)}  }
  chain antispoof {
    type filter hook prerouting priority raw; policy accept;
    iifname ${taps} jump from_guest
  }
  chain from_guest {
    meta nfproto != ipv6 drop
    iifname . ip6 saddr @sources accept
    ip6 saddr { ::, fe80::/10 } icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept
    drop
  }
  chain forward {
    type filter hook forward priority filter; policy accept;
    oifname ${taps} jump to_guest
  }
  chain output {
    type filter hook output priority filter; policy accept;
    oifname ${taps} jump to_guest
  }
  chain to_guest {
    meta nfproto != ipv6 drop
    meta l4proto ipv6-icmp accept
    ct direction reply ct state established,related accept
    oifname . tcp dport @allowed accept
    drop
  }
  chain input {
    type filter hook input priority filter; policy accept;
    iifname ${taps} jump to_node
  }
  chain to_node {
    icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, echo-request, echo-reply, destination-unreachable, packet-too-big, time-exceeded, parameter-problem } accept
    ct direction reply ct state established,related accept
    drop
  }
}
`;
}

/** Takes the node's table away, whether it is there or not. */
export function dropRuleset(names: NetworkNames): string {
  return `table inet ${names.table}\ndelete table inet ${names.table}\n`;
}

function elements(list: readonly string[]): string {
  return list.length === 0 ? '' : `    elements = { ${list.join(', ')} }\n`;
}

/** The text below is read by a program with root's powers: nothing gets in that is not of the expected form. */
function check({ tap, network, allowedPorts }: GuestLink): void {
  const isNetwork = ipaddr.IPv6.isValidCIDR(network) && network.endsWith('/124');
  const arePorts = allowedPorts.every((port) => Number.isInteger(port) && port >= 1 && port <= PORT_MAX);
  if (!TAP.test(tap) || !isNetwork || !arePorts)
    throw new AppError('INVALID_PARAMETERS', 'a firewall rule has the wrong form');
}
