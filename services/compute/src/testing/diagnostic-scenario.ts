// The diagnostic machine of a node with the real kernel: this process's namespace is the node, another stands for a monitor
// far away. Run by network/diagnostic-machine.strangers.e2e.test.ts.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { createLogger } from '@skerry/kit';
import { DIAGNOSTIC_VM, programAddress } from '@skerry/protocol';
import { run } from '../host/run.ts';
import { AddressBook } from '../network/address-book.ts';
import { DiagnosticMachine } from '../network/diagnostic-machine.ts';
import { networkNames } from '../network/names.ts';
import { NodeNetwork } from '../network/network.ts';
import { Machine } from './namespaces.ts';

const PREFIX = '2001:db8:5:1::/64';
const names = networkNames('abcdef0123456789'.repeat(4));
const options = {
  names,
  prefix: PREFIX,
  ipv4Pool: '172.20.16.0/20',
  lanOpen: false,
  openNetworks: [],
  guestConnections: 0,
  guestMbit: 0,
};
const log = createLogger('scenario', 'fatal');

const start = (network: Pick<NodeNetwork, 'add'>, more: object = {}) =>
  new DiagnosticMachine({
    ...{ names, ipv6Prefix: PREFIX, ipv4Pool: options.ipv4Pool, network, log, obstacle: null },
    addresses: new AddressBook({ table: names.table, ports: { first: 24_000, last: 24_009 } }),
    runsPrograms: true,
    ...more,
  }).start();

async function scenario(): Promise<void> {
  // Names of namespaces are files: this scenario's are its own.
  mkdirSync('/run/netns', { recursive: true });
  await run('mount', ['-t', 'tmpfs', 'none', '/run/netns']);
  await using far = await Machine.start();
  await run('ip', ['link', 'set', 'lo', 'up']);
  await far.wire('up0');
  await run('ip', ['addr', 'add', '2001:db8:5:1::1/64', 'dev', 'up0', 'nodad']);
  await run('ip', ['link', 'set', 'up0', 'up']);
  await far.ip('link set eth0 up', '-6 addr add 2001:db8:5:1::ff/64 dev eth0 nodad');

  const network = new NodeNetwork(options);
  await network.start([]);
  const machine = await start(network);
  const address = programAddress('2001:db8:5:1::', DIAGNOSTIC_VM);
  assert.deepEqual(machine, { ipv6: address, reason: null });
  assert.ok(await far.pings(address), 'a monitor on the link, by neighbour discovery');
  assert.ok(await far.isSilent('2001:db8:5:1:1:63fa:f8b5:db12'), 'nobody else answers');
  assert.ok(await far.isShut(address, 22), 'nothing but the kernel is there');
  // A namespace is held to its own address, like a guest.
  const inside = (...args: string[]) =>
    run('ip', ['-netns', `${names.tapPrefix}${DIAGNOSTIC_VM.slice(0, 9)}`, ...args]);
  await inside('-6', 'addr', 'add', '2001:db8:5:1:3::1/128', 'dev', 'eth0', 'nodad');
  await run('ip', [
    '-6',
    'route',
    'add',
    '2001:db8:5:1:3::1/128',
    'dev',
    `${names.tapPrefix}${DIAGNOSTIC_VM.slice(0, 9)}`,
  ]);
  assert.ok(await far.isSilent('2001:db8:5:1:3::1'));

  console.log('a restart of the node, and one after the cable was lost');
  const next = new NodeNetwork(options);
  await next.start([]);
  assert.ok(await far.isSilent(address), 'the node does not run programs yet');
  assert.equal((await start(next)).ipv6, address);
  assert.ok(await far.pings(address));
  assert.equal((await start(next)).ipv6, address, 'putting it up again changes nothing');
  assert.ok(await far.pings(address));

  console.log('nothing stays; what is in the way is said');
  await next.clear();
  assert.equal((await run('ip', ['netns', 'list'])).trim(), '');
  assert.ok(!(await run('ip', ['-o', 'link'])).includes(names.tapPrefix));
  const refused = await start({ add: () => Promise.reject(new Error('Operation not permitted')) });
  assert.deepEqual(refused, {
    ipv6: null,
    reason: 'its network namespace cannot be created: Operation not permitted',
  });
  assert.match((await start(next, { runsPrograms: false })).reason!, /runs no programs/);
}

try {
  await scenario();
} catch (error) {
  console.error(error);
  process.exitCode = 1;
}
