import assert from 'node:assert/strict';
import type { Clock } from './clock.ts';
import { coreUrl } from './places.ts';
import { FOLDER, type Server } from './server.ts';

/** What an operator does on a server: lines of docs/packages.md, docs/joining.md and docs/backup.md. */

type Role = 'compute' | 'gateway';
const JOIN_MINUTES = 25;
const BACKUP = '/root/node.skerry';

const apt = (release: string, names: readonly string[]) =>
  [
    'export DEBIAN_FRONTEND=noninteractive',
    'apt-get -q update',
    `apt-get -q --yes install ${names.map((name) => `${FOLDER}/${release}/${name}_*.deb`).join(' ')}`,
  ].join(' && ');

/** With `journalctl` where it fails: a unit that does not start says why there. */
const told = (line: string, role: Role) =>
  `${line} || { code=$?; systemctl status --no-pager skerry-${role} >&2; journalctl -q -n 30 -o cat -u skerry-${role} >&2; exit $code; }`;

/** The image that a node would build at its first instance is put into its cache: that takes an hour where it is emulated. */
const PUT_IMAGE = `mkdir -p /var/cache/skerry/compute && cp -r ${FOLDER}/images /var/cache/skerry/compute/`;

export async function install(server: Server, names: readonly string[]): Promise<void> {
  await server.run(apt('first', names));
  if (names.includes('skerry-compute')) await server.run(PUT_IMAGE);
}

export async function joinAs(server: Server, role: Role, flags: string): Promise<void> {
  const line = `skerry join ${coreUrl} --role ${role} ${flags} --yes --timeout ${JOIN_MINUTES}m`;
  const report = await server.run(told(line, role));
  assert.match(report, new RegExp(`This ${role} node has joined`));
  console.log(report.replace(/^/gm, '    '));
}

const propertyOf = (server: Server, role: Role, property: string) =>
  server.run(`systemctl show --value --property=${property} skerry-${role}`);
/** The QEMU of each machine, by the numbers of their processes. */
const findGuests = (server: Server) =>
  server.run("find /sys/fs/cgroup -path '*/skerry-guests.slice/*' -name cgroup.procs -exec cat {} +");

/** Every daemon of the server goes on as the new version, and its machines and connections notice nothing. */
export async function upgrade(server: Server, names: readonly string[], role: Role): Promise<void> {
  const look = async () => ({
    process: await propertyOf(server, role, 'MainPID'),
    guests: await findGuests(server),
    version: await server.run('skerry --version'),
  });
  const before = await look();
  await server.run(told(apt('next', names), role));
  const after = await look();
  assert.notEqual(after.version, before.version);
  assert.notEqual(after.process, before.process, 'the new version serves');
  assert.equal(after.guests, before.guests, 'the QEMU of each machine is the one from before');
  if (role === 'compute') assert.notEqual(after.guests, '');
  assert.equal(await propertyOf(server, role, 'ActiveState'), 'active');
}

/** A setting that is wrong is found out by a reload, and the gateway goes on with those it has. */
export async function reloadWrongly(server: Server): Promise<void> {
  const file = '/etc/skerry/gateway.env';
  const look = () => propertyOf(server, 'gateway', 'MainPID');
  const before = await look();
  await server.run(`cp ${file} ${file}.right && echo 'SKERRY_GATEWAY_HTTPS_PORT=many' >> ${file}`);
  await assert.rejects(
    server.run('systemctl reload skerry-gateway'),
    /Job for skerry-gateway.service failed/,
  );
  assert.match(await server.run('journalctl -q -n 20 -o cat -u skerry-gateway'), /SKERRY_GATEWAY_HTTPS_PORT/);
  assert.equal(await look(), before);
  await server.run(`mv ${file}.right ${file}`);
  await server.run(told('systemctl reload skerry-gateway', 'gateway'));
  assert.notEqual(await look(), before);
}

/** Its unit runs since it was started: neither the watchdog nor an end of the process has started it again. */
export async function expectNoRestart(server: Server, role: Role): Promise<void> {
  assert.equal(await propertyOf(server, role, 'ActiveState'), 'active');
  assert.equal(await propertyOf(server, role, 'NRestarts'), '0');
}

/** A compute node's disk is lost; another one gets what its backup holds, and is the same node to the network. */
export async function loseAndRestore(clock: Clock, server: Server, backup: string): Promise<void> {
  const names = ['skerry', 'skerry-compute'];
  const config = '/etc/skerry/compute.env';
  const idOf = () =>
    server.run('curl -s http://localhost:4020/status/config | grep -o \'"node_hash":"[^"]*"\'');
  const id = await idOf();
  await clock.step('lost: skerry backup', async () => {
    await server.run(`skerry backup ${BACKUP} --role compute`);
    await server.fetch(BACKUP, backup);
    await server.fetch(config, `${backup}.env`);
  });
  await clock.step('lost: the power is cut and the disk is gone', () => server.lose());
  await clock.step('restored: an empty Debian boots', () => server.boot());
  await clock.step('restored: apt installs the packages', async () => {
    await server.run(apt('next', names));
    await server.run(PUT_IMAGE);
  });
  await clock.step('restored: skerry restore, and the unit serves', async () => {
    await server.put(backup, BACKUP);
    await server.put(`${backup}.env`, config);
    await server.run(`skerry restore ${BACKUP}`);
    await server.run(told('systemctl enable --now skerry-compute', 'compute'));
    assert.equal(await idOf(), id, 'the network knows it as the same node');
  });
}
