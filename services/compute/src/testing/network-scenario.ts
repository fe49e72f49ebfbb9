// A node's network with the real kernel: this process's namespace is the node, others stand for guests and for machines
// around. Run by network/live.e2e.test.ts.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { until } from '@skerry/kit/testing/until';
import { run } from '../host/run.ts';
import { guestLinkOf, placeOf } from '../instances/place.ts';
import { AddressBook } from '../network/address-book.ts';
import type { OpenPorts } from '../network/host-ports.ts';
import { networkNames, tapName } from '../network/names.ts';
import { NodeNetwork } from '../network/network.ts';
import type { GuestLink } from '../network/ruleset.ts';
import { Machine } from './namespaces.ts';

const PREFIX = '2001:db8:5:1::/64';
const POOL = '172.20.16.0/20';
const NODE4 = '198.51.100.1';
const FAR4 = '198.51.100.2';
const FAR6 = '2001:db8:5:1::ff';
const LAN_HOST = '192.168.7.2';
const PORTS = { first: 24_000, last: 24_099 };
const IDS = ['1'.repeat(64), '2'.repeat(64)];
const names = networkNames('abcdef0123456789'.repeat(4));
const share = { guestConnections: 0, guestMbit: 0 };
const options = { names, prefix: PREFIX, ipv4Pool: POOL, lanOpen: false, openNetworks: [], ...share };

function step(text: string): void {
  console.log(`[${process.uptime().toFixed(1)} s] ${text}`);
}

/** A namespace at the other end of what the node takes for the guest's tap. */
async function startGuest(id: string): Promise<Machine> {
  const guest = await Machine.start();
  await guest.wire(tapName(names, id));
  return guest;
}

async function startFar(): Promise<Machine> {
  const far = await Machine.start();
  await run('ip', ['link', 'set', 'lo', 'up']);
  await far.wire('up0');
  for (const address of [`${NODE4}/24`, '192.168.7.1/24', '2001:db8:5:1::1/64'])
    await run('ip', ['addr', 'add', address, 'dev', 'up0', ...(address.includes(':') ? ['nodad'] : [])]);
  await run('ip', ['link', 'set', 'up0', 'up']);
  await far.ip(
    'link set eth0 up',
    `addr add ${FAR4}/24 dev eth0`,
    `addr add ${LAN_HOST}/24 dev eth0`,
    'addr add 169.254.169.254/16 dev eth0',
    `-6 addr add ${FAR6}/64 dev eth0 nodad`,
  );
  await run('ip', ['route', 'add', '169.254.0.0/16', 'dev', 'up0']);
  return far;
}

/** What belongs to somebody else on this machine, and must be the same at the end. */
async function readOthers(): Promise<string> {
  return run('nft', ['list', 'table', 'inet', 'operator']);
}

async function checkReach(
  far: Machine,
  one: Machine,
  other: Machine,
  a: GuestLink,
  b: GuestLink,
): Promise<void> {
  step(
    'from far: the allowed ports and no others, over IPv6 (by neighbour discovery on the link) and by the ports of the node',
  );
  assert.equal(await far.greets(a.guest, 80), FAR6);
  assert.ok(await far.isShut(a.guest, 8080));
  assert.ok(await far.pings(a.guest));
  assert.equal(await far.greets(NODE4, a.hostPorts[22]!), FAR4, 'the guest sees who comes');
  assert.equal(await far.greets(NODE4, a.hostPorts[80]!), FAR4);
  assert.ok(await far.isShut(NODE4, 8080));
  assert.ok(await far.isShut(a.ipv4.guest, 80), 'the private address is nobody to others');

  step(
    'out of a guest: anywhere, under the address of the node; not to private networks, not to link-local addresses',
  );
  assert.equal(await one.greets(FAR4, 7000), NODE4);
  assert.equal(await one.greets(FAR6, 7000), a.guest);
  assert.ok(await one.isShut(LAN_HOST, 7000));
  assert.ok(await one.isShut('169.254.169.254', 7000));
  assert.ok(await one.isShut(NODE4, 9000), 'a service of the node');
  assert.ok(await one.isShut(a.ipv4.gateway, 9000));
  assert.ok(await one.pings(a.ipv4.gateway));
  assert.ok(await one.pings(FAR4));

  step('UDP: the allowed ports and no others, by the same port of the node as TCP has; replies both ways');
  assert.equal(await far.greetsUdp(a.guest, 80), FAR6);
  assert.ok(await far.isShutUdp(a.guest, 8080));
  assert.ok(await far.isShutUdp(a.guest, 22));
  assert.ok(await far.isShut(a.guest, 5_000));
  assert.equal(await far.greetsUdp(NODE4, a.hostPorts[80]!), FAR4);
  assert.equal(await far.greetsUdp(NODE4, a.hostPorts[5_000]!), FAR4);
  assert.ok(await far.isShutUdp(NODE4, a.hostPorts[22]!));
  assert.equal(await one.greetsUdp(FAR6, 7_000), a.guest);
  assert.equal(await one.greetsUdp(FAR4, 7_000), NODE4);
  assert.equal(await other.greetsUdp(NODE4, a.hostPorts[80]!), b.ipv4.guest);

  step('between guests: the allowed ports, over IPv6 and by the ports of the node');
  assert.equal(await other.greets(a.guest, 80), b.guest);
  assert.ok(await other.isShut(a.guest, 8080));
  assert.equal(await other.greets(NODE4, a.hostPorts[80]!), b.ipv4.guest);

  step("a guest with another's address is not heard");
  await one.ip(`-6 addr add ${b.guest}/128 dev eth0 nodad`, `addr add ${b.ipv4.guest}/32 dev eth0`);
  assert.ok(await one.isSilent(FAR6, '-I', b.guest));
  assert.ok(await one.isSilent(FAR4, '-I', b.ipv4.guest));
  assert.ok(await one.pings(FAR4, '-I', a.ipv4.guest));
  await one.ip(`-6 addr del ${b.guest}/128 dev eth0`, `addr del ${b.ipv4.guest}/32 dev eth0`);
}

async function scenario(): Promise<void> {
  await run('nft', ['-f', '-'], {
    input:
      'table inet operator {\nchain keep {\ntype filter hook forward priority 10; policy accept;\n}\n}\n',
  });
  await using far = await startFar();
  await far.serve(7000);
  const network = new NodeNetwork(options);
  await network.start([]);
  await using one = await startGuest(IDS[0]!);
  await using other = await startGuest(IDS[1]!);
  const book = new AddressBook({ table: names.table, ports: PORTS });
  const linkOf = async (id: string, open: OpenPorts) =>
    guestLinkOf(placeOf(names, PREFIX, id), POOL, open, await book.claim(id, open));
  const a = await linkOf(IDS[0]!, { allowedPorts: [22, 80], allowedUdpPorts: [80, 5_000] });
  const b = await linkOf(IDS[1]!, { allowedPorts: [22] });
  assert.notEqual(a.hostPorts[22], b.hostPorts[22]);
  let sinceMs = performance.now();
  await network.add(a);
  step(`a guest's link in ${(performance.now() - sinceMs).toFixed(0)} ms`);
  await network.add(b);
  await one.configure(a);
  await other.configure(b);
  await one.serve(22, 80, 8080, 8443);
  await one.serveUdp(80, 5_000, 8080, 8443);
  await far.serveUdp(7_000);
  await using node = createServer().listen(9000, '::');
  await once(node, 'listening');
  await checkReach(far, one, other, a, b);

  step('a port opens and closes live, and keeps its number');
  const wider = await linkOf(IDS[0]!, { allowedPorts: [22, 80, 8443], allowedUdpPorts: [80, 5_000, 8443] });
  assert.deepEqual({ ...wider.hostPorts, 8443: undefined }, { ...a.hostPorts, 8443: undefined });
  sinceMs = performance.now();
  await network.add(wider);
  step(`rules changed in ${(performance.now() - sinceMs).toFixed(0)} ms`);
  assert.equal(await far.greets(NODE4, wider.hostPorts[8443]!), FAR4);
  assert.equal(await far.greetsUdp(NODE4, wider.hostPorts[8443]!), FAR4);
  const talks = [await far.talksTo(NODE4, wider.hostPorts[8443]!), await far.talksTo(a.guest, 8443)];
  await network.add(a);
  for (const lines of talks)
    await until('whoever talks to a port that closes is told', () => lines.includes('ECONNRESET'));
  assert.ok(await far.isShut(NODE4, wider.hostPorts[8443]!));
  assert.ok(await far.isShut(a.guest, 8443));
  assert.ok(await far.isShutUdp(NODE4, wider.hostPorts[8443]!));
  assert.ok(await far.isShutUdp(a.guest, 8443));

  step('another node of this machine, and a program that listens, keep their ports');
  const neighbour = new AddressBook({ table: 'skerry_other', ports: PORTS });
  const theirs = await neighbour.claim(IDS[0]!, { allowedPorts: [22, 80] });
  const ours = Object.values(a.hostPorts);
  assert.ok(Object.values(theirs.hostPorts).every((port) => !ours.includes(port)));

  step(
    'a connection lasts through a restart of the node, which puts up the same and takes away what is too much',
  );
  const before = await run('nft', ['list', 'table', 'inet', names.table]);
  await run('ip', ['tuntap', 'add', 'dev', `${names.tapPrefix}fffffffff`, 'mode', 'tap']);
  await run('ip', ['-6', 'neigh', 'add', 'proxy', '2001:db8:5:1:3::9991', 'dev', 'up0']);
  const next = new NodeNetwork(options);
  await next.start([a, b]);
  assert.equal(await run('nft', ['list', 'table', 'inet', names.table]), before);
  assert.ok(!(await run('ip', ['-o', 'link'])).includes('fffffffff'));
  assert.ok(!(await run('ip', ['-6', 'neigh', 'show', 'proxy'])).includes('9991'));
  assert.equal(await far.greets(NODE4, a.hostPorts[80]!), FAR4);
  assert.equal(await far.greets(a.guest, 80), FAR6);

  step('rules that another firewall took away are put up again, and those that are there are left alone');
  assert.equal(await next.keepRules(), false);
  for (const table of [names.table, `${names.table}_shares`]) {
    await run('nft', ['delete', 'table', 'inet', table]);
    assert.equal(await next.keepRules(), true);
  }
  assert.equal(await run('nft', ['list', 'table', 'inet', names.table]), before);
  assert.ok(await far.isShut(a.guest, 8080));

  step('after the link was down, neighbours are answered for guests again');
  const proxies = () => run('ip', ['-6', 'neigh', 'show', 'proxy']);
  assert.equal(await next.keepNeighbours(), false);
  for (const state of ['down', 'up']) await run('ip', ['link', 'set', 'up0', state]);
  assert.equal((await proxies()).trim(), '', 'the kernel forgot them');
  assert.equal(await next.keepNeighbours(), false, 'as long as nothing of the /64 is on the link');
  await run('ip', ['addr', 'replace', '2001:db8:5:1::1/64', 'dev', 'up0', 'nodad']);
  await run('ip', ['route', 'replace', '169.254.0.0/16', 'dev', 'up0']);
  assert.equal(await next.keepNeighbours(), true);
  for (const { guest } of [a, b]) assert.ok((await proxies()).includes(guest));
  assert.equal(await next.keepNeighbours(), false);
  assert.equal(await far.greets(a.guest, 80), FAR6);

  step('everything is torn down (a reboot) and put up again from what is remembered');
  await run('nft', ['delete', 'table', 'inet', names.table]);
  const again = new AddressBook({ table: names.table, ports: PORTS });
  again.restore(IDS[0]!, { link: 0, hostPorts: a.hostPorts });
  assert.deepEqual((await again.claim(IDS[0]!, a)).hostPorts, a.hostPorts);
  const last = new NodeNetwork(options);
  await last.start([a, b]);
  assert.equal(await far.greets(NODE4, a.hostPorts[80]!), FAR4);

  step('the private networks are open where the operator says so; link-local addresses never');
  await new NodeNetwork({ ...options, lanOpen: true }).start([a, b]);
  assert.equal(await one.greets(LAN_HOST, 7000), '192.168.7.1');
  assert.ok(await one.isShut('169.254.169.254', 7000));

  step('what belongs to others was not touched');
  await last.clear();
  assert.equal(await last.keepRules(), false);
  assert.match(await readOthers(), /chain keep/);
  assert.ok(!(await run('nft', ['list', 'tables'])).includes(names.table));
  assert.equal((await run('ip', ['-6', 'neigh', 'show', 'proxy'])).trim(), '');
  assert.equal((await readFile('/proc/sys/net/ipv4/ip_forward', 'utf8')).trim(), '1');
}

try {
  await scenario();
  step('done');
} catch (error) {
  console.error(error);
  // Servers that were left open must not keep a scenario that failed alive.
  process.exit(1);
}
