import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { hear } from '@skerry/kit/testing/heard';
import { awaitOutput, endProcess } from '@skerry/kit/testing/processes';
import { helloWire } from '../../tls/testing/hello.ts';
import type { DataPlaneOptions } from '../port.ts';
import {
  ADDRESS_A,
  ADDRESS_B,
  NAME_A,
  NAME_B,
  openClient,
  openWorld,
  readAll,
  readBytes,
  readLeft,
  until,
} from '../testing/suite/world.ts';
import { AdminSocket } from './admin.ts';
import { HaproxyDataPlane } from './plane.ts';
import { haproxyForTests } from './testing/program.ts';

const program = await haproxyForTests();
const HELLO = helloWire({ serverName: NAME_A });
const HEADER_START = '\r\n\r\n\0\r\nQUIT\n';
const echo = (socket: Socket) => void socket.pipe(socket);

const PROGRAMS = '/usr/local/bin:/usr/bin:/bin';
const PLANE_MODULE = new URL('./plane.ts', import.meta.url).href;
/** Says the process id of its HAProxy. */
const LONE_GATEWAY = `
  const [module, program] = process.argv.slice(1);
  const { HaproxyDataPlane } = await import(module);
  const plane = new HaproxyDataPlane({
    hosts: ['127.0.0.1'], httpPort: 0, httpsPort: 0, upstreamHttpPort: 80, upstreamHttpsPort: 443, program,
    explain: () => ({ code: 'HOSTNAME_NOT_FOUND', message: '' }), onTrouble: console.error,
  });
  await plane.listen();
  process.stdout.write(String(plane.pid));
`;

/** A world, its plane, and what it complained of. */
async function openHaproxy(change: (options: DataPlaneOptions) => Partial<DataPlaneOptions> = () => ({})) {
  const troubles: string[] = [];
  let plane: HaproxyDataPlane | undefined;
  const world = await openWorld((options) => {
    const onTrouble = (_: object, message: string) => troubles.push(message);
    plane = new HaproxyDataPlane({ ...options, ...change(options), program, onTrouble });
    return plane;
  });
  world.tlsA.handle = echo;
  world.tlsB.handle = echo;
  return { ...world, plane: plane!, troubles };
}

async function speak(port: number, hello = HELLO): Promise<Socket> {
  const client = await openClient(port);
  client.write(hello);
  await readBytes(client, hello.length);
  return client;
}

/** Everything that an instance gets of one connection, by name, or an empty text where it is refused. */
async function echoed(port: number, serverName: string): Promise<string> {
  const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  client.end(helloWire({ serverName }));
  return (await readLeft(client)).toString('latin1');
}

const isAlive = (pid: number) => {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
};

describe('HAProxy data plane alone', () => {
  test('a HAProxy that falls is started again on the same port, with all routes of now and the counts of before', async () => {
    await using world = await openHaproxy();
    const { plane, ports, troubles } = world;
    plane.applyChanges([{ hostname: NAME_B, ipv6: ADDRESS_B, proxyHeader: true }]);
    (await speak(ports.https)).destroy();
    await until(async () => (await plane.stats()).tls.outcomes.relayed === 1);
    process.kill(plane.pid!, 'SIGKILL');
    plane.applyChanges([
      { hostname: 'new.example', ipv6: ADDRESS_A },
      { hostname: NAME_A, ipv6: null },
    ]);
    await until(() => troubles.some((message) => message.includes('restarting it')));
    await until(async () => (await echoed(ports.https, 'new.example')) !== '');
    assert.equal(await echoed(ports.https, NAME_A), '');
    assert.ok((await echoed(ports.https, NAME_B)).startsWith(HEADER_START));
    assert.ok((await plane.stats()).tls.outcomes.relayed >= 3);
  });

  test('a HAProxy whose routes are not what it was told gets them anew', async () => {
    await using world = await openHaproxy();
    const { plane, ports, troubles } = world;
    const admin = new AdminSocket(join(plane.directory!, 'admin.sock'));
    await admin.ask(`clear map ${join(plane.directory!, 'routes.map')}`);
    assert.equal(await echoed(ports.https, NAME_A), '');
    plane.applyChanges([{ hostname: NAME_B, ipv6: ADDRESS_A }]);
    await until(() => troubles.some((message) => message.includes('did not take a change')));
    await until(async () => (await echoed(ports.https, NAME_A)) !== '');
    assert.notEqual(await echoed(ports.https, NAME_B), '');
  });

  test('many changes at once: each name leads where it should, with the PROXY header too, and nobody is without a route meanwhile', async () => {
    await using world = await openHaproxy();
    const { plane, ports, troubles } = world;
    const names = Array.from({ length: 200 }, (_, index) => `n${index}.example`);
    const changeAll = (ipv6: string | null, proxyHeader = false) =>
      plane.applyChanges(names.map((hostname) => ({ hostname, ipv6, proxyHeader })));
    changeAll(ADDRESS_A);
    await plane.stats();
    changeAll(ADDRESS_B);
    plane.applyChanges([{ hostname: 'n7.example', ipv6: ADDRESS_A, proxyHeader: true }]);
    assert.notEqual(await echoed(ports.https, NAME_A), '');
    await plane.stats();
    const admin = new AdminSocket(join(plane.directory!, 'admin.sock'));
    const mapped = (await admin.ask(`show map ${join(plane.directory!, 'routes.map')}`)).split('\n');
    assert.ok(mapped.some((line) => line.endsWith(` n8.example ${ADDRESS_B}`)));
    assert.match(await admin.ask('show map'), /curr_ver=1 /);
    assert.ok((await echoed(ports.https, 'n7.example')).startsWith(HEADER_START));
    changeAll(null);
    await plane.stats();
    assert.equal(await echoed(ports.https, 'n8.example'), '');
    assert.notEqual(await echoed(ports.https, NAME_A), '');
    assert.deepEqual(troubles, []);
  });

  test('routes change while strangers ask about more names than may wait, and nobody loses a connection', async () => {
    await using world = await openHaproxy();
    const { plane, ports, troubles } = world;
    const names = Array.from({ length: 1_500 }, (_, index) => `n${index}.example`);
    plane.applyChanges(names.map((hostname) => ({ hostname, ipv6: ADDRESS_A })));
    await plane.stats();
    const { pid } = plane;
    const client = await speak(ports.https);
    const asked = names.map((name) => plane.findAttempts(name));
    // Until all of them wait.
    await new Promise(setImmediate);
    plane.applyChanges([{ hostname: 'new.example', ipv6: ADDRESS_A }]);
    await Promise.all(asked);
    await plane.stats();
    assert.notEqual(await echoed(ports.https, 'new.example'), '');
    client.end('still here');
    assert.match(String(await readAll(client)), /still here$/);
    assert.deepEqual([plane.pid, troubles], [pid, []]);
  });

  test('nobody else may enter its directory; HAProxy and directory end with the plane', async () => {
    const world = await openHaproxy();
    const { directory, pid } = world.plane;
    assert.equal(statSync(directory!).mode & 0o777, 0o700);
    for (const name of ['admin.sock', 'haproxy.cfg', 'routes.map'])
      assert.equal(statSync(join(directory!, name)).mode & 0o777, 0o600, name);
    await world[Symbol.asyncDispose]();
    assert.equal(isAlive(pid!), false);
    assert.equal(existsSync(directory!), false);
    assert.deepEqual(world.troubles, []);
  });

  test('a gateway that is killed leaves no HAProxy behind', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'skerry-plane-'));
    await using stack = new AsyncDisposableStack();
    // What HAProxy ran with stays there.
    stack.defer(() => rm(directory, { recursive: true, force: true }));
    const child = spawn(
      process.execPath,
      ['--input-type=module', '-e', LONE_GATEWAY, PLANE_MODULE, program],
      { stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: PROGRAMS, TMPDIR: directory } },
    );
    stack.defer(() => endProcess(child, 'SIGKILL'));
    const told = await awaitOutput(child, 'the gateway', hear(child, ['stderr']));
    const pid = Number(told);
    assert.ok(pid > 1, told);
    stack.defer(() => void (isAlive(pid) && process.kill(pid, 'SIGKILL')));
    assert.equal(isAlive(pid), true);
    await endProcess(child, 'SIGKILL');
    await until(() => !isAlive(pid));
  });

  test('a name that wants the PROXY header, another address, or none: open connections stay', async () => {
    await using world = await openHaproxy();
    const { plane, ports } = world;
    const change = async (ipv6: string | null, proxyHeader: boolean) => {
      plane.applyChanges([{ hostname: NAME_A, ipv6, proxyHeader }]);
      await plane.stats();
    };
    const open = [await speak(ports.https)];
    await change(ADDRESS_A, true);
    assert.ok((await echoed(ports.https, NAME_A)).startsWith(HEADER_START));
    const withHeader = await openClient(ports.https);
    withHeader.write(HELLO);
    await readBytes(withHeader, HEADER_START.length + HELLO.length);
    open.push(withHeader);
    await change(ADDRESS_B, true);
    const [before] = [world.tlsB.sockets.size];
    const moved = await openClient(ports.https);
    moved.write(HELLO);
    await readBytes(moved, HEADER_START.length);
    assert.equal(world.tlsB.sockets.size, before + 1);
    open.push(moved);
    await change(ADDRESS_A, false);
    open.push(await speak(ports.https));
    await change(null, false);
    assert.equal(await echoed(ports.https, NAME_A), '');
    for (const client of open) {
      client.end('still here');
      assert.match(String(await readAll(client)), /still here$/);
    }
    // Its server goes when its last connection has ended, at the next change.
    const admin = new AdminSocket(join(plane.directory!, 'admin.sock'));
    await until(async () => {
      await change(null, false);
      return !/ s\d+ /.test(await admin.ask('show servers state headers'));
    });
    assert.deepEqual(world.troubles, []);
  });

  test('a mapped IPv4 address is a client of its own', async () => {
    await using world = await openHaproxy((options) => ({
      hosts: ['::'],
      limits: { ...options.limits, maxPerClient: 1 },
    }));
    const clients: Socket[] = [];
    for (const localAddress of ['127.0.0.5', '127.0.0.6']) {
      const client = connect({ port: world.ports.https, host: '127.0.0.1', localAddress });
      client.write(HELLO);
      await readBytes(client, HELLO.length);
      clients.push(client);
    }
    for (const client of clients) client.destroy();
  });
});
