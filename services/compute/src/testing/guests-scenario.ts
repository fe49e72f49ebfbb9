// What a hostile guest can reach and take, with the real kernel: this process's namespace is the node, others stand for
// guests and for the operator's network. Run by network/guests.strangers.e2e.test.ts.
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { run } from '../host/run.ts';
import { guestLinkOf, placeOf } from '../instances/place.ts';
import { networkNames, tapName } from '../network/names.ts';
import { NodeNetwork, type NodeNetworkOptions } from '../network/network.ts';
import { type GuestLink, TAP_GROUP } from '../network/ruleset.ts';
import { checkNeighbours, checkTunnel, checkUnused, FLOOD } from './guests-neighbours.ts';
import { Machine } from './namespaces.ts';
import { until } from './wait.ts';

/** As a development network has it: private. */
const PREFIX = 'fd5c:e771:0:1::/64';
const POOL = '172.20.16.0/20';
const FAR4 = '198.51.100.2';
const FAR6 = '2001:db8:7::2';
/** Of the operator's network: the first may be opened, the others never lead anywhere. */
const LAN_HOSTS = ['fd12:3456::2', 'fec0::7:2', '192.168.7.2'];
const CARRIERS = ['64:ff9b::c0a8:702', '64:ff9b:1::2', '2002:c0a8:702::1', '2001:0:c0a8:702::1'];
/** A guest of another node of this machine. */
const NEIGHBOUR = 'fd77::3:0:0:2';
const IDS = ['1'.repeat(64), '2'.repeat(64)];
const CONNECTIONS = 10;
const MBIT = 8;
/** Router advertisement, redirect, router renumbering. */
const ROGUE = [134, 137, 138];
/** Only what hangs takes as long. */
const READY_MS = 300_000;
const names = networkNames('abcdef0123456789'.repeat(4));
const options: NodeNetworkOptions = {
  ...{ names, prefix: PREFIX, ipv4Pool: POOL, lanOpen: false, openNetworks: [] },
  guestConnections: 0,
  guestMbit: 0,
};

function step(text: string): void {
  console.log(`[${process.uptime().toFixed(1)} s] ${text}`);
}

/** As another process of the node does, which has other settings. */
const restartWith = (changed: Partial<NodeNetworkOptions>) =>
  new NodeNetwork({ ...options, ...changed }).start(guests);

async function startGuest(link: GuestLink): Promise<Machine> {
  const guest = await Machine.start();
  await guest.wire(link.tap);
  return guest;
}

async function configure(guest: Machine, link: GuestLink): Promise<void> {
  await guest.configure(link);
  await guest.serve(80);
}

async function startFar(): Promise<Machine> {
  const far = await Machine.start();
  await run('ip', ['link', 'set', 'lo', 'up']);
  await far.wire('up0');
  await run('ip', ['addr', 'add', '198.51.100.1/24', 'dev', 'up0']);
  await run('ip', ['addr', 'add', '192.168.7.1/24', 'dev', 'up0']);
  await run('ip', ['addr', 'add', '2001:db8:7::1/64', 'dev', 'up0', 'nodad']);
  await run('ip', ['link', 'set', 'up0', 'up']);
  await far.ip('link set eth0 up', `addr add ${FAR4}/24 dev eth0`, 'addr add 192.168.7.2/24 dev eth0');
  for (const address of [FAR6, ...LAN_HOSTS.filter((one) => one.includes(':')), ...CARRIERS]) {
    await far.ip(`-6 addr add ${address}/64 dev eth0 nodad`);
    await run('ip', ['-6', 'route', 'replace', `${address}/128`, 'dev', 'up0']);
  }
  await far.ip('-6 route add default via 2001:db8:7::1');
  await far.serve(7000);
  return far;
}

async function startNeighbour(): Promise<Machine> {
  const neighbour = await Machine.start();
  await neighbour.wire('s99999111111111');
  await run('ip', ['link', 'set', 's99999111111111', 'group', `${TAP_GROUP}`, 'up']);
  await run('ip', ['-6', 'addr', 'add', 'fe80::1/64', 'dev', 's99999111111111', 'nodad']);
  await run('ip', ['-6', 'route', 'add', 'fd77::3:0:0:0/124', 'dev', 's99999111111111']);
  await neighbour.ip(
    'link set eth0 up',
    `-6 addr add ${NEIGHBOUR}/124 dev eth0 nodad`,
    '-6 route add default via fe80::1 dev eth0',
  );
  await neighbour.serve(80);
  return neighbour;
}

/** What of some addresses answers a guest. */
async function reached(guest: Machine, addresses: readonly string[]): Promise<string[]> {
  const answers = await Promise.all(addresses.map((address) => guest.greets(address, 7000)));
  return addresses.filter((_, index) => answers[index] !== undefined);
}

async function checkReach(one: Machine, b: GuestLink): Promise<void> {
  step('M5: from a guest nothing of the operator is reached, and all is that should be');
  for (const address of [...LAN_HOSTS, ...CARRIERS])
    await run('ping', ['-c', '1', '-W', '60', address]).catch(() =>
      assert.fail(`the node reaches ${address}`),
    );
  assert.deepEqual(await reached(one, [FAR4, FAR6, ...LAN_HOSTS, ...CARRIERS]), [FAR4, FAR6]);
  assert.ok(await one.greets(b.guest, 80), 'a guest of the same node');
  assert.ok(await one.greets(NEIGHBOUR, 80), 'a guest of another node of this machine');

  step('M5: what the operator opens, and no more');
  await new NodeNetwork({ ...options, openNetworks: ['fd12:3456::/48', '64:ff9b::/96'] }).start(guests);
  assert.deepEqual(await reached(one, [...LAN_HOSTS, ...CARRIERS]), ['fd12:3456::2']);
  await new NodeNetwork({ ...options, lanOpen: true }).start(guests);
  assert.deepEqual(await reached(one, [...LAN_HOSTS, ...CARRIERS]), LAN_HOSTS);
  await new NodeNetwork(options).start(guests);
}

async function checkHeld(one: Machine): Promise<void> {
  const [a, b] = guests as [GuestLink, GuestLink];
  step(
    'the tap of a machine whose record is damaged stays, leads nowhere, and is its own again with its rules',
  );
  const network = new NodeNetwork(options);
  assert.equal(await network.findGateway(a.tap), a.ipv4.gateway);
  await network.start([b], [a.tap]);
  assert.ok(await one.isShut(FAR6, 7000));
  await network.add(a);
  assert.ok(await one.greets(FAR6, 7000));
}

/** Sends one packet of ICMPv6 of a type, as a router would; a raw socket, which Node has none of. */
const sendIcmp6 = (from: Machine, type: number, to: string) =>
  from.run(
    'python3',
    '-c',
    `import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, 255)
s.sendto(bytes([${type}, 0, 0, 0]) + bytes(12), ('${to}', 0))`,
  );

/** What a machine hears from now on: the types of ICMPv6, or the ports that datagrams come from. */
async function hear(machine: Machine, what: 'icmp' | 'udp', port = 546): Promise<() => number[]> {
  const listen =
    what === 'icmp'
      ? 'socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)'
      : `socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.bind(('::', ${port}))`;
  const lines = await machine.watch(
    'python3',
    '-c',
    `import socket
s = ${listen}
print(0, flush=True)
while True:
  data, peer = s.recvfrom(2000)
  print(${what === 'icmp' ? 'data[0]' : 'peer[1]'}, flush=True)`,
  );
  return () => lines.map(Number);
}

const sendUdp = (from: Machine, port: number, to: string) =>
  from.run(
    process.execPath,
    '-e',
    `const s = require('dgram').createSocket('udp6'); s.bind(${port}, '::', () => s.send('offer', 546, '${to}', () => s.close()))`,
  );

async function checkRogue(one: Machine, far: Machine): Promise<void> {
  step('M5: nobody hears a guest as a router or as a server of addresses');
  const types = await hear(far, 'icmp');
  for (const type of ROGUE) await sendIcmp6(one, type, FAR6);
  // Sent last, on the same way: when it is heard, all before it was decided.
  await one.pings(FAR6);
  await until('the echo request is heard', READY_MS, () => types().includes(128));
  assert.ok(!types().some((type) => ROGUE.includes(type)));
  const ports = await hear(far, 'udp');
  for (const port of [547, 67, 5_000]) await sendUdp(one, port, FAR6);
  await until('an ordinary datagram is heard', READY_MS, () => ports().includes(5_000));
  assert.deepEqual(ports(), [0, 5_000]);
}

/** Of the private network, at a port that tells the datagram from others. */
const LAN4 = '192.168.7.2';
const ROUTED_PORT = 5_001;
const HEARD_PORT = 5_000;

/** A datagram to the node that asks to be sent on from there (RFC 791, loose source and record route), then an ordinary one. */
const routedBy = (gateway: string) => `import socket
def send(to, port, options = b''):
  s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
  if options: s.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, options)
  s.bind(('', port))
  s.sendto(b'x', (to, ${HEARD_PORT}))
send('${LAN4}', ${ROUTED_PORT}, bytes([131, 7, 4]) + socket.inet_aton('${gateway}') + bytes(1))
send('${FAR4}', ${ROUTED_PORT + 1})`;

async function checkSourceRoutes(one: Machine, far: Machine, { tap, ipv4 }: GuestLink): Promise<void> {
  step('a packet that names its own way does not go on from the node to where the guest may not send');
  for (const name of ['all', tap])
    await writeFile(`/proc/sys/net/ipv4/conf/${name}/accept_source_route`, '1');
  // Who hears it must accept it, too.
  const accept = 'echo 1 > /proc/sys/net/ipv4/conf/$name/accept_source_route';
  await far.run('sh', '-c', `for name in all eth0; do ${accept}; done`);
  const ports = await hear(far, 'udp', HEARD_PORT);
  await one.run('python3', '-c', routedBy(ipv4.gateway));
  await until('an ordinary datagram is heard', READY_MS, () => ports().includes(ROUTED_PORT + 1));
  assert.ok(!ports().includes(ROUTED_PORT));
  await writeFile('/proc/sys/net/ipv4/conf/all/accept_source_route', '0');
}

/** An address of the node itself, and how many connections the kernel tracks in this namespace. */
const NODE6 = '2001:db8:7::1';
const readTracked = async () => Number(await readFile('/proc/sys/net/netfilter/nf_conntrack_count', 'utf8'));

/** Each echo request with another identifier is another connection to the kernel. */
const PINGS = `import socket, struct
s = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
for n in range(${FLOOD}):
  s.sendto(struct.pack('>BBHHH', 128, 0, 0, n, 1), ('${NODE6}', 0))`;

async function checkTracked(one: Machine, far: Machine): Promise<void> {
  step('a guest that pings the node without end has the kernel track no more connections than its share');
  await new NodeNetwork({ ...options, guestConnections: CONNECTIONS }).start(guests);
  const before = await readTracked();
  await one.run('python3', '-c', PINGS);
  const tracked = (await readTracked()) - before;
  assert.ok(tracked <= CONNECTIONS, `${tracked}, with those that it has`);
  assert.ok(await far.pings(NODE6), 'others are heard');
}

/** After so many as may have come, it is seen whether others do: what a firewall drops never does. */
const SILENCE_MS = 1_000;

/** How many of so many connections at a time come about, where `expected` should. */
async function hold(
  from: Machine,
  host: string,
  port: number,
  count: number,
  expected: number,
): Promise<number> {
  const code = `let open = 0; const end = () => { console.log(open); process.exit(); }; const come = () => { if (++open === ${expected}) setTimeout(end, ${SILENCE_MS}); }; for (let i = 0; i < ${count}; i++) require('net').connect(${port}, '${host}').once('data', come).on('error', () => {}); setTimeout(end, ${READY_MS})`;
  return Number(await from.run(process.execPath, '-e', code));
}

async function checkConnections(one: Machine, other: Machine, far: Machine): Promise<void> {
  const [a, b] = guests as [GuestLink, GuestLink];
  const network = new NodeNetwork({ ...options, guestConnections: CONNECTIONS });
  await network.start(guests);
  for (const host of [FAR6, FAR4]) {
    step(`M11: a guest has so many connections to ${host} and no more, and leaves the next guest its own`);
    const [mine, theirs] = await Promise.all([
      hold(one, host, 7000, 40, CONNECTIONS),
      hold(other, host, 7000, 5, 5),
    ]);
    assert.deepEqual([mine, theirs], [CONNECTIONS, 5]);
  }
  step('M11: to a guest as well');
  assert.equal(await hold(far, a.guest, 80, 40, CONNECTIONS), CONNECTIONS);
  step('M11: what is counted stays counted when rules change');
  const code = `let open = 0; for (let i = 0; i < ${CONNECTIONS}; i++) require('net').connect(7000, '${FAR6}').once('data', () => console.log(++open))`;
  const opened = await one.watch(process.execPath, '-e', code);
  await until('all are open', READY_MS, () => opened.length === CONNECTIONS);
  await network.add(b);
  await new NodeNetwork({ ...options, guestConnections: CONNECTIONS }).start(guests);
  assert.ok(await one.isShut(FAR6, 7000));
}

/** Milliseconds until what was sent came back from a server that echoes. */
async function echo(from: Machine, host: string, bytes: number): Promise<number> {
  const code = `const s = require('net').connect(7000, '${host}'); let got = 0; const since = performance.now(); s.write(Buffer.alloc(${bytes})); s.on('data', (d) => { got += d.length; if (got > ${bytes}) { console.log(performance.now() - since); process.exit(); } })`;
  return Number(await from.run(process.execPath, '-e', code));
}

async function checkBandwidth(one: Machine): Promise<void> {
  const bytes = 4 * 1024 * 1024;
  await new NodeNetwork(options).start(guests);
  const freeMs = await echo(one, FAR6, bytes);
  await new NodeNetwork({ ...options, guestMbit: MBIT }).start(guests);
  const boundMs = await echo(one, FAR6, bytes);
  step(
    `M11: 4 MiB there and back in ${freeMs.toFixed(0)} ms, within ${MBIT} Mbit/s in ${boundMs.toFixed(0)} ms`,
  );
  assert.ok(boundMs > 1_500, 'no quicker than the rate, less what passes at once');
}

let guests: GuestLink[];

async function scenario(): Promise<void> {
  const hostPorts = [{ 22: 24_001 }, { 22: 24_002 }];
  guests = IDS.map((id, index) =>
    guestLinkOf(
      placeOf(names, PREFIX, id),
      POOL,
      { allowedPorts: [80] },
      { link: index, hostPorts: hostPorts[index]! },
    ),
  );
  const [a, b] = guests as [GuestLink, GuestLink];
  assert.equal(a.tap, tapName(names, IDS[0]!));
  await using far = await startFar();
  await using _neighbour = await startNeighbour();
  await using one = await startGuest(a);
  await using other = await startGuest(b);
  const network = new NodeNetwork(options);
  await network.start(guests);
  await configure(one, a);
  await configure(other, b);
  await until('the ways are there', READY_MS, async () => (await one.pings(FAR6)) && (await one.pings(FAR4)));
  await checkReach(one, b);
  await checkHeld(one);
  await checkRogue(one, far);
  await checkSourceRoutes(one, far, a);
  await checkUnused(one, far, a);
  await checkNeighbours(one, a, FAR6, restartWith);
  await checkTunnel(one, a, restartWith);
  await checkConnections(one, other, far);
  await checkBandwidth(one);
  await checkTracked(one, far);
  await network.clear();
  assert.ok(!(await run('nft', ['list', 'tables'])).includes(names.table));
}

try {
  await scenario();
  step('done');
} catch (error) {
  console.error(error);
  // Servers that were left open must not keep a scenario that failed alive.
  process.exit(1);
}
