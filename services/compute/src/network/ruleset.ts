import { AppError } from '@skerry/protocol';
import ipaddr from 'ipaddr.js';
import type { ComputeConfig } from '../config.ts';
import { type HostPorts, type OpenPorts, protocolsOf } from './host-ports.ts';
import type { Ipv4Link } from './ipv4.ts';
import type { NetworkNames } from './names.ts';
import { LAN, NEVER_FROM_GUESTS, type Networks } from './private-networks.ts';

/** What the firewall has to know of one guest. */
export interface GuestLink extends OpenPorts {
  readonly tap: string;
  /** The instance's own network, `.../124`. */
  readonly network: string;
  /** The guest's address in it. */
  readonly guest: string;
  readonly ipv4: Ipv4Link;
  readonly hostPorts: HostPorts;
  /** A network namespace of this machine, named like its tap, in place of a virtual machine. */
  readonly isNamespace?: boolean;
}

export interface RuleSettings extends Pick<ComputeConfig, 'lanOpen' | 'openNetworks'> {
  /** The private IPv4 addresses of all guests of this node. */
  readonly ipv4Pool: string;
}

/** The maps of the node's ports to guests' ones; other nodes of the same machine read them, to choose others. */
export const FORWARD_MAPS = { tcp: 'forwarded', udp: 'forwarded_udp' } as const;
const PROTOCOLS = ['tcp', 'udp'] as const;

const TAP = /^s[0-9a-f]{14}$/;
const PORT_MAX = 65_535;

/** Every guest's tap of every node of this machine is in this group of interfaces; a number that nobody else is known to use. */
export const TAP_GROUP = 29_547;

const REJECT = {
  ip: 'reject with icmp type admin-prohibited',
  ip6: 'reject with icmpv6 type admin-prohibited',
};
const RETURN = { ip: 'return', ip6: 'return' };

/** What only a router or a server of addresses says; a guest is none. */
const ROGUE6 = 'nd-router-advert, nd-redirect, router-renumbering';
const ROGUE4 = 'redirect, router-advertisement';
/** Ports that servers of DHCP and DHCPv6 answer from. */
const DHCP_SERVER_PORTS = '67, 547';

/**
 * The node's whole table, for `nft -f`: one transaction takes the old one away and puts the new one in place, so no packet
 * sees half of it. No chain has a policy but accept, and every rule asks for one of the node's own taps, addresses or
 * ports first: traffic of others, and other tables, are not touched.
 *
 * - To a guest, wherever from (the network, this machine, another guest): ICMP, the allowed TCP and UDP ports, and replies to
 *   connections that the guest began. The port is asked of every packet, not only of the first: a port that is taken
 *   back ends what was open.
 * - From a guest: only with a source address of its own, to this machine itself only ICMP and replies, and never to the
 *   link-local addresses behind it; to its private networks only where the operator says so. Guests of other nodes of this
 *   machine are asked for by those nodes' rules. No word of a router or of a DHCP server.
 * - IPv4: out under the node's address; in by the node's ports that are led to a guest.
 */
export function nodeRuleset(
  names: NetworkNames,
  guests: readonly GuestLink[],
  { ipv4Pool, lanOpen, openNetworks }: RuleSettings,
): string {
  for (const guest of guests) check(guest);
  checkThat(ipaddr.IPv4.isValidCIDR(ipv4Pool));
  checkThat(openNetworks.every((one) => ipaddr.isValid(one) || ipaddr.isValidCIDR(one)));
  return `${dropRuleset(names)}table inet ${names.table} {
${setsOf(guests)}${filterChains(names, lanOpen, openNetworks)}${translationChains(names, ipv4Pool)}}
`;
}

const tapsOf = ({ tapPrefix }: NetworkNames) => `"${tapPrefix}*"`;

function setsOf(guests: readonly GuestLink[]): string {
  const sources = guests.map(({ tap, network }) => `"${tap}" . ${network}`);
  const sources4 = guests.map(({ tap, ipv4 }) => `"${tap}" . ${ipv4.guest}`);
  const allowed = guests.flatMap(({ tap, allowedPorts, allowedUdpPorts }) => [
    ...[...new Set(allowedPorts)].map((port) => `"${tap}" . tcp . ${port}`),
    ...[...new Set(allowedUdpPorts)].map((port) => `"${tap}" . udp . ${port}`),
  ]);
  return `  set sources {
    type ifname . ipv6_addr
    flags interval
${elements(sources)}  }
  set sources4 {
    type ifname . ipv4_addr
${elements(sources4)}  }
  set allowed {
    type ifname . inet_proto . inet_service
${elements(allowed)}  }
${PROTOCOLS.map((protocol) => forwardMap(guests, protocol)).join('')}`;
}

function forwardMap(guests: readonly GuestLink[], protocol: (typeof PROTOCOLS)[number]): string {
  const forwarded = guests.flatMap((guest) =>
    Object.entries(guest.hostPorts)
      .filter(([port]) => protocolsOf(Number(port), guest)[protocol])
      .map(([port, hostPort]) => `${hostPort} : ${guest.ipv4.guest} . ${port}`),
  );
  return `  map ${FORWARD_MAPS[protocol]} {
    type inet_service : ipv4_addr . inet_service
${elements(forwarded)}  }
`;
}

const towards = (networks: Networks, verdict: Record<keyof Networks, string>) =>
  (['ip', 'ip6'] as const)
    .filter((family) => networks[family].length > 0)
    .map((family) => `    ${family} daddr { ${networks[family].join(', ')} } ${verdict[family]}\n`)
    .join('');

function filterChains(names: NetworkNames, lanOpen: boolean, openNetworks: readonly string[]): string {
  const taps = tapsOf(names);
  const isIpv6 = (network: string) => network.includes(':');
  const open = { ip: openNetworks.filter((one) => !isIpv6(one)), ip6: openNetworks.filter(isIpv6) };
  return `  chain antispoof {
    type filter hook prerouting priority raw; policy accept;
    iifname ${taps} jump from_guest
  }
  chain from_guest {
    icmpv6 type { ${ROGUE6} } drop
    icmp type { ${ROGUE4} } drop
    udp sport { ${DHCP_SERVER_PORTS} } drop
    iifname . ip6 saddr @sources accept
    iifname . ip saddr @sources4 accept
    ip6 saddr { ::, fe80::/10 } icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept
    drop
  }
  chain forward {
    type filter hook forward priority filter; policy accept;
    oifname ${taps} jump to_guest
    iifname ${taps} oifname != ${taps} jump out_of_node
  }
  chain output {
    type filter hook output priority filter; policy accept;
    oifname ${taps} jump to_guest
  }
  chain to_guest {
    meta l4proto { icmp, ipv6-icmp } accept
    ct direction reply ct state established,related accept
    oifname . meta l4proto . th dport @allowed accept
    meta l4proto tcp ct state established reject with tcp reset
    drop
  }
  chain out_of_node {
    ct direction reply ct state established,related accept
    oifgroup ${TAP_GROUP} return
${towards(NEVER_FROM_GUESTS, REJECT)}${towards(open, RETURN)}${lanOpen ? '' : towards(LAN, REJECT)}  }
  chain input {
    type filter hook input priority filter; policy accept;
    iifname ${taps} jump to_node
  }
  chain to_node {
    icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, echo-request, echo-reply, destination-unreachable, packet-too-big, time-exceeded, parameter-problem } accept
    icmp type { echo-request, echo-reply, destination-unreachable, time-exceeded, parameter-problem } accept
    ct direction reply ct state established,related accept
    drop
  }
`;
}

function translationChains(names: NetworkNames, ipv4Pool: string): string {
  const taps = tapsOf(names);
  const leadBy = (rule: (protocol: string) => string) =>
    PROTOCOLS.map((one) => `    ${rule(one)} dport map @${FORWARD_MAPS[one]}\n`).join('');
  return `  chain lead_in {
    type nat hook prerouting priority dstnat; policy accept;
${leadBy((protocol) => `meta nfproto ipv4 fib daddr type local dnat ip to ${protocol}`)}  }
  chain lead_in_own {
    type nat hook output priority -100; policy accept;
${leadBy((protocol) => `ip daddr != 127.0.0.0/8 fib daddr type local dnat ip to ${protocol}`)}  }
  chain hide {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${ipv4Pool} oifname != ${taps} masquerade
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

const isPort = (port: number) => Number.isInteger(port) && port >= 1 && port <= PORT_MAX;

/** The text above is read by a program with root's powers: nothing gets in that is not of the expected form. */
function check({
  tap,
  network,
  guest,
  allowedPorts,
  allowedUdpPorts = [],
  ipv4,
  hostPorts,
}: GuestLink): void {
  checkThat(TAP.test(tap) && ipaddr.IPv6.isValid(guest));
  checkThat(ipaddr.IPv6.isValidCIDR(network) && network.endsWith('/124'));
  checkThat(allowedPorts.every(isPort) && allowedUdpPorts.every(isPort));
  checkThat([ipv4.gateway, ipv4.guest].every((address) => ipaddr.IPv4.isValidFourPartDecimal(address)));
  checkThat(ipaddr.IPv4.isValidCIDR(ipv4.network));
  checkThat(Object.entries(hostPorts).every(([port, hostPort]) => isPort(Number(port)) && isPort(hostPort)));
}

function checkThat(isRight: boolean): void {
  if (!isRight) throw new AppError('INVALID_PARAMETERS', 'a firewall rule is malformed');
}
