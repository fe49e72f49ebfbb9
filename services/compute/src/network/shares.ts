import { AppError } from '@skerry/protocol';
import type { ComputeConfig } from '../config.ts';
import type { NetworkNames } from './names.ts';

/** What one guest may have of what all of them share. 0: as much as there is. */
export type GuestShare = Pick<ComputeConfig, 'guestConnections' | 'guestMbit'>;

const BYTES_PER_MBIT = 125_000;
/** What may pass at once above the rate: a quarter of a second's, and some of the largest pieces that the kernel moves. */
const BURST_SECONDS = 0.25;
const BURST_BYTES_MIN = 1024 * 1024;
/** Guests of one node that are counted; more than it has links. */
const GUESTS_MAX = 8_192;
/** A guest that is gone is forgotten: by the kernel where its connections are counted, else after this time. */
const IDLE = '1h';
/**
 * The kernel remembers everybody who asks for one of its addresses, and every neighbour that it looks for: 1,024 in all, of this
 * machine and all guests. Where they are full it finds nobody new, its router neither.
 */
const ASKING = 'rate over 1/second burst 32 packets';
const LOOKED_FOR = 'rate over 5/second burst 32 packets';
/**
 * A guest has sixteen addresses, one of which it is given (instanceAddress in @skerry/protocol): whoever sends to the others has the kernel
 * look for each, for three seconds. An address that a guest has sent from is in use: it answers who
 * looks for it, so that being found once is enough.
 */
const UNUSED = 'rate over 20/minute burst 1 packets';
const GIVEN = 'ip6 daddr & ::f == ::1';
const SPOKEN_MAX = 65_536;
const SPOKEN = '1d';
/**
 * Those whom a guest reached a while ago count no more. Where a set is full, whoever is not in it counts with each packet, a router that
 * others need too: a guest adds no more than 332 in a minute, so that several hundred that do nothing else do not fill it.
 */
const FOUND_MAX = 262_144;
const FOUND = '1m';
/** What has neighbours to be found. A tunnel has none, and often no router: each host of the Internet would count as one. */
const WITH_NEIGHBOURS = 'oiftype { ether, 32 }';

const dynamicSet = (type: string, size: number, timeout?: string) =>
  `type ${type}\n    size ${size}\n    flags dynamic${timeout ? `,timeout\n    timeout ${timeout}` : ''}`;

const SETS = {
  began: dynamicSet('ifname', GUESTS_MAX),
  taken: dynamicSet('ifname', GUESTS_MAX),
  sent: dynamicSet('ifname', GUESTS_MAX, IDLE),
  received: dynamicSet('ifname', GUESTS_MAX, IDLE),
  asking: dynamicSet('ifname', GUESTS_MAX, IDLE),
  looking: dynamicSet('ifname', GUESTS_MAX, IDLE),
  unused: dynamicSet('ifname', GUESTS_MAX, IDLE),
  spoken: dynamicSet('ifname . ipv6_addr', SPOKEN_MAX, SPOKEN),
  // A set that is there stays as it is: one of another size, or for another time, needs another name.
  found6: dynamicSet('ifname . ipv6_addr', FOUND_MAX, FOUND),
  found4: dynamicSet('ifname . ipv4_addr', FOUND_MAX, FOUND),
};
const HOOKS = ['forward', 'input', 'output'];
const CHAINS = ['from_guest', 'to_guest', 'to_neighbours', 'to_unused'];

/** The name of the table that holds guests to their shares. */
export const sharesTableOf = ({ table }: NetworkNames): string => `${table}_shares`;

/** What is counted and measured of packets to or from a guest. */
function shareRules(
  { guestConnections, guestMbit }: GuestShare,
  interfaceName: 'iifname' | 'oifname',
  [counted, measured]: readonly [keyof typeof SETS, keyof typeof SETS],
): string {
  const rate = guestMbit * BYTES_PER_MBIT;
  const burst = Math.max(BURST_BYTES_MIN, Math.round(rate * BURST_SECONDS));
  return [
    guestConnections > 0 &&
      `    ct state new add @${counted} { ${interfaceName} ct count over ${guestConnections} } drop`,
    guestMbit > 0 &&
      `    update @${measured} { ${interfaceName} limit rate over ${rate} bytes/second burst ${burst} bytes } drop`,
  ]
    .filter((rule) => rule !== false)
    .map((rule) => `${rule}\n`)
    .join('');
}

/**
 * What holds each guest to its share, for `nft -f`: a table of its own, behind the firewall's, so that only what may pass is
 * counted, to this machine itself, too: each echo request may be another connection that the kernel tracks, of as many as it tracks for
 * all. Putting it up again keeps what is counted.
 *
 * Whom the kernel has to find for a packet is the next on its way: a router, or, on each network that this machine is itself on, its
 * receiver.
 */
export function sharesRuleset(names: NetworkNames, share: GuestShare): string {
  const { guestConnections, guestMbit } = share;
  if (![guestConnections, guestMbit].every((value) => Number.isSafeInteger(value) && value >= 0))
    throw new AppError('INVALID_PARAMETERS', "a guest's share must be a whole number");
  const table = sharesTableOf(names);
  const taps = `"${names.tapPrefix}*"`;
  const sets = Object.entries(SETS).map(([name, body]) => `  set ${name} {\n    ${body}\n  }\n`);
  const hooks = HOOKS.map(
    (name) => `  chain ${name} {\n    type filter hook ${name} priority filter + 10; policy accept;\n  }\n`,
  );
  const chains = CHAINS.map((name) => `  chain ${name} {\n  }\n`);
  const flushes = [...HOOKS, ...CHAINS].map((name) => `flush chain inet ${table} ${name}\n`);
  return `table inet ${table} {
${[...sets, ...hooks, ...chains].join('')}}
${flushes.join('')}table inet ${table} {
  chain from_guest {
    ip6 saddr != fe80::/10 ip6 saddr & ::f != ::1 update @spoken { iifname . ip6 saddr }
${shareRules(share, 'iifname', ['began', 'sent'])}  }
  chain to_guest {
${shareRules(share, 'oifname', ['taken', 'received'])}  }
  chain to_neighbours {
    iifname . rt ip6 nexthop @found6 return
    iifname . rt ip nexthop @found4 return
    update @looking { iifname limit ${LOOKED_FOR} } drop
    add @found6 { iifname . rt ip6 nexthop }
    add @found4 { iifname . rt ip nexthop }
  }
  chain to_unused {
    ${GIVEN} return
    ip6 daddr { fe80::/10, ff00::/8 } return
    oifname . ip6 daddr @spoken return
    update @unused { oifname limit ${UNUSED} } drop
  }
  chain forward {
    oifname ${taps} meta nfproto ipv6 jump to_unused
    iifname ${taps} oifname != ${taps} ${WITH_NEIGHBOURS} jump to_neighbours
    iifname ${taps} jump from_guest
    oifname ${taps} jump to_guest
  }
  chain input {
    iifname ${taps} ip6 saddr fe80::/10 icmpv6 type nd-neighbor-solicit update @asking { iifname limit ${ASKING} } drop
    iifname ${taps} jump from_guest
  }
  chain output {
    oifname ${taps} meta nfproto ipv6 jump to_unused
  }
}
`;
}

/** Takes the table away, whether it is there or not. */
export function dropShares(names: NetworkNames): string {
  const table = sharesTableOf(names);
  return `table inet ${table}\ndelete table inet ${table}\n`;
}
