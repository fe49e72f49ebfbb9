// How many neighbours a guest, and who sends to it, has the kernel look for. Part of guests-scenario.ts.
import assert from 'node:assert/strict';
import { run } from '../host/run.ts';
import type { NodeNetworkOptions } from '../network/network.ts';
import type { GuestLink } from '../network/ruleset.ts';
import type { Machine } from './namespaces.ts';
import { Tunnel } from './tunnel.ts';
import { until } from './wait.ts';

type RestartWith = (changed: Partial<NodeNetworkOptions>) => Promise<void>;

/** Only what hangs takes as long. */
const FOUND_MS = 300_000;
/** So many of whatever a guest sends. */
export const FLOOD = 300;
/** What passes at once, and some more while it is sent; a seldom one of the scenario's own is among them. */
const REMEMBERED_MAX = 100;

/** Asks for the node under ever new addresses of the link, by IPv6, then by IPv4; or sends to ever new addresses. */
const floods = (gateway4: string) => ({
  solicits: `import socket, struct
s = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
s.setsockopt(socket.IPPROTO_IPV6, 78, 1)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, 255)
link = socket.if_nametoindex('eth0')
asked = bytes([135, 0, 0, 0]) + bytes(4) + socket.inet_pton(socket.AF_INET6, 'fe80::1') + bytes([1, 1, 2, 0, 0, 0, 0, 1])
for n in range(${FLOOD}):
  source = bytes([0xfe, 0x80]) + bytes(12) + struct.pack('>H', 0x4000 + n) + struct.pack('@I', link)
  s.sendmsg([asked], [(socket.IPPROTO_IPV6, socket.IPV6_PKTINFO, source)], 0, ('fe80::1', 0, 0, link))`,
  arp: `import socket, struct
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(('eth0', 0))
mac = bytes([2, 0, 0, 0, 0, 1])
for n in range(${FLOOD}):
  source = socket.inet_aton('10.9.0.0')[:2] + struct.pack('>H', 1 + n)
  asked = struct.pack('>HHBBH', 1, 0x0800, 6, 4, 1) + mac + source + bytes(6) + socket.inet_aton('${gateway4}')
  s.send(b'\\xff' * 6 + mac + struct.pack('>H', 0x0806) + asked)`,
  datagrams: `import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
for n in range(${FLOOD}):
  s.sendto(b'x', ('fd5c:e771:0:1:9::%x' % (n + 1), 9))`,
  // Whatever network of this machine they are in.
  uplink: `import socket
six, four = [socket.socket(family, socket.SOCK_DGRAM) for family in (socket.AF_INET6, socket.AF_INET)]
for n in range(${FLOOD}):
  six.sendto(b'x', ('2001:db8:7:0:9::%x' % (n + 1), 9))
  four.sendto(b'x', ('203.0.%d.%d' % (112 + n // 250, 2 + n % 250), 9))`,
});

const countNeighbours = async (family: '-4' | '-6', device: string) =>
  (JSON.parse((await run('ip', ['-j', family, 'neigh', 'show', 'dev', device])) || '[]') as unknown[]).length;

export async function checkNeighbours(
  one: Machine,
  { tap, ipv4 }: GuestLink,
  far6: string,
  restartWith: RestartWith,
): Promise<void> {
  console.log(
    'a guest has the kernel remember few neighbours: it knows 1,024, of this machine and all guests',
  );
  // As where the /64 is on the link.
  await run('ip', ['-6', 'addr', 'add', 'fd5c:e771:0:1::1/64', 'dev', 'up0', 'nodad']);
  await run('ip', ['addr', 'add', '203.0.112.1/22', 'dev', 'up0']);
  await restartWith({ lanOpen: true });
  for (const flood of Object.values(floods(ipv4.gateway))) await one.run('python3', '-c', flood);
  // Sent last: when they are answered, all before them was decided.
  assert.ok((await one.pings(far6)) && (await one.pings(ipv4.gateway)));
  const counts = await Promise.all([
    countNeighbours('-6', tap),
    countNeighbours('-4', tap),
    countNeighbours('-6', 'up0'),
    countNeighbours('-4', 'up0'),
  ]);
  for (const count of counts) assert.ok(count > 0 && count < REMEMBERED_MAX, `${counts}`);
  await run('ip', ['-6', 'addr', 'del', 'fd5c:e771:0:1::1/64', 'dev', 'up0']);
  await run('ip', ['addr', 'del', '203.0.112.1/22', 'dev', 'up0']);
  await restartWith({});
}

export async function checkTunnel(
  one: Machine,
  { ipv4 }: GuestLink,
  restartWith: RestartWith,
): Promise<void> {
  console.log('a guest may send to any number of hosts through a tunnel');
  await using tunnel = await Tunnel.open('tunnel0');
  await run('ip', ['addr', 'add', '203.0.111.1/32', 'dev', tunnel.name]);
  await run('ip', ['route', 'add', '203.0.112.0/22', 'dev', tunnel.name]);
  await run('ip', ['-6', 'route', 'add', '2001:db8:7:0:9::/80', 'dev', tunnel.name]);
  await restartWith({ lanOpen: true });
  await one.run('python3', '-c', floods(ipv4.gateway).uplink);
  await until('all is sent', FOUND_MS, async () => (await tunnel.countSent()) >= 2 * FLOOD);
  await restartWith({});
}

/** Some of the addresses that a guest may use beside its own. */
const unusedOf = ({ network }: GuestLink) =>
  Array.from({ length: 14 }, (_, index) => network.replace(/0\/124$/, (index + 2).toString(16)));
/** Looked for at a time, where strangers send to all of them. */
const LOOKED_FOR_MAX = 3;

export async function checkUnused(one: Machine, far: Machine, link: GuestLink): Promise<void> {
  console.log(
    'who sends to addresses that a guest does not use has few looked for; those that it uses are reached',
  );
  const [used = '', ...unused] = unusedOf(link);
  const flood = `import socket, struct
s = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
for address in ${JSON.stringify(unused)} * 20:
  try: s.sendto(struct.pack('>BBHHH', 128, 0, 0, 1, 1), (address, 0))
  except PermissionError: pass`;
  await one.ip(`-6 addr add ${used}/124 dev eth0 nodad`);
  await until('its other address is found', FOUND_MS, () => far.pings(used));
  for (const sender of [far, undefined]) {
    await (sender ? sender.run('python3', '-c', flood) : run('python3', ['-c', flood]));
    for (const address of [link.guest, used]) assert.ok(await far.pings(address), address);
    const shown = JSON.parse(await run('ip', ['-j', '-6', 'neigh', 'show', 'dev', link.tap])) as {
      dst: string;
    }[];
    const sought = shown.filter(({ dst }) => unused.includes(dst)).map(({ dst }) => dst);
    assert.ok(sought.length <= LOOKED_FOR_MAX, `${sought}`);
  }
  await one.ip(`-6 addr del ${used}/124 dev eth0`);
}
