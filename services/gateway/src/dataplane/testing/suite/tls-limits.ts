import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { helloWire } from '../../../tls/testing/hello.ts';
import type { DataPlane, DataPlaneOptions } from '../../port.ts';
import type { Subject } from '../subject.ts';
import {
  ADDRESS_A,
  endingOf,
  expectTurnedAway,
  NAME_A,
  NAME_B,
  NAME_DEAD,
  NAME_UNKNOWN,
  openClient,
  openWorld,
  ROUTES,
  readAll,
  readBytes,
  readLeft,
  until,
} from './world.ts';

const HELLO = helloWire({ serverName: NAME_A });
const INTERNAL_ERROR = Buffer.from([21, 3, 3, 0, 2, 2, 80]);
const echo = (socket: Socket) => void socket.pipe(socket);

async function speak(port: number, hello = HELLO, from?: string): Promise<Socket> {
  const client = await openClient(port, '127.0.0.1', from);
  client.write(hello);
  await readBytes(client, hello.length);
  return client;
}

/** Whether nobody listens any more. */
const isClosed = (port: number) =>
  openClient(port).then(
    (taken) => {
      taken.destroy();
      return false;
    },
    () => true,
  );

export function tlsLimitsSuite(subject: Subject): void {
  const { create } = subject;
  /** How both sides learn that the time of a drain is over. */
  const cutEnding = () => (subject.differs('orderly_ends') ? 'end' : 'reset');
  describe('limits, headers and ends of TLS connections', () => {
    test('one client has so many connections, and gets a place again', async () => {
      await using world = await openWorld(create, { maxPerClient: 2 });
      world.tlsA.handle = echo;
      const { https } = world.ports;
      const [one, two] = [await speak(https), await speak(https)];
      await expectTurnedAway(https);
      assert.equal((await world.plane.stats()).tls.outcomes.client_limit, 1);
      // Another address is another client.
      const other = await openClient(https, '::1');
      other.end(HELLO);
      assert.deepEqual(await readAll(other), Buffer.from(HELLO));
      one.destroy();
      await until(async () => (await world.plane.stats()).tls.figures.open === 1);
      const three = await speak(https);
      for (const client of [two, three]) client.destroy();
    });

    test('where no place is left, who has none takes the oldest of the client that has most', async () => {
      await using world = await openWorld(create, { maxConnections: 4 });
      world.tlsA.handle = echo;
      const { https } = world.ports;
      const [few, many] = [[await speak(https, HELLO, '127.0.0.2')], [] as Socket[]];
      for (let index = 0; index < 3; index++) many.push(await speak(https));
      await expectTurnedAway(https);
      if (subject.differs('yielding')) {
        await expectTurnedAway(https, '127.0.0.3');
      } else {
        for (const from of ['127.0.0.3', '127.0.0.4']) few.push(await speak(https, HELLO, from));
        for (const gone of many.splice(0, 2)) assert.equal(await endingOf(gone), 'reset');
        assert.equal((await world.plane.stats()).tls.figures.yielded, 2);
        // Everybody has one, and keeps it.
        await expectTurnedAway(https, '127.0.0.5');
      }
      for (const client of [...few, ...many]) {
        client.end('still here');
        assert.equal(String(await readAll(client)), 'still here');
      }
      assert.equal((await world.plane.stats()).tls.outcomes.too_many, 2);
    });

    test('who waits for its instance, or has not spoken, makes room too', async () => {
      await using world = await openWorld(create, { maxConnections: 2 });
      if (subject.differs('yielding')) return;
      world.tlsA.handle = echo;
      const { https } = world.ports;
      const silent = [await openClient(https), await openClient(https)];
      await until(async () => (await world.plane.stats()).tls.figures.open === 2);
      (await speak(https, HELLO, '127.0.0.2')).destroy();
      await endingOf(silent[0]!);
      assert.equal((await world.plane.stats()).tls.outcomes.crowded_out, 1);
      silent[1]!.destroy();
    });

    test('one instance has so many connections; others are not touched', async () => {
      await using world = await openWorld(create, { maxPerInstance: 1 });
      world.tlsA.handle = echo;
      world.tlsB.handle = echo;
      const { https } = world.ports;
      const one = await speak(https);
      const refused = await openClient(https);
      refused.write(HELLO);
      const answer = subject.differs('alerts') ? Buffer.alloc(0) : INTERNAL_ERROR;
      assert.deepEqual(await readLeft(refused), answer);
      refused.destroy();
      (await speak(https, helloWire({ serverName: NAME_B }))).destroy();
      one.destroy();
      await until(async () => (await world.plane.stats()).tls.figures.open === 0);
      (await speak(https)).destroy();
      assert.equal((await world.plane.stats()).tls.outcomes.instance_limit, 1);
    });

    test('an instance that asks for it learns who the client is (PROXY protocol 2)', async () => {
      await using world = await openWorld(create);
      await subject.change(world, [{ hostname: NAME_A, ipv6: ADDRESS_A, proxyHeader: true }]);
      const { https } = world.ports;
      for (const [host, isIpv4] of [
        ['127.0.0.1', true],
        ['::1', false],
      ] as const) {
        const accepted = new Promise<Socket>((resolve) => {
          world.tlsA.handle = resolve;
        });
        const client = await openClient(https, host);
        client.write(HELLO);
        const instance = await accepted;
        const addressBytes = isIpv4 ? 4 : 16;
        const header = await readBytes(instance, 16 + 2 * addressBytes + 4 + HELLO.length);
        assert.equal(header.toString('latin1', 0, 12), '\r\n\r\n\0\r\nQUIT\n');
        assert.deepEqual([...header.subarray(12, 16)], [0x21, isIpv4 ? 0x11 : 0x21, 0, 2 * addressBytes + 4]);
        const loopback = isIpv4 ? [127, 0, 0, 1] : [...Buffer.alloc(15), 1];
        assert.deepEqual([...header.subarray(16, 16 + 2 * addressBytes)], [...loopback, ...loopback]);
        const portsAt = 16 + 2 * addressBytes;
        assert.equal(header.readUInt16BE(portsAt), client.localPort);
        assert.equal(header.readUInt16BE(portsAt + 2), https);
        assert.deepEqual(header.subarray(portsAt + 4), Buffer.from(HELLO));
        client.destroy();
      }
    });

    test('attempts to connect are remembered: when, and why not', async () => {
      await using world = await openWorld(create);
      world.tlsA.handle = echo;
      const begun = Date.now() / 1000;
      const client = await speak(world.ports.https);
      const good = await world.plane.findAttempts(NAME_A);
      // Told in whole seconds.
      assert.ok(good!.connectedAt! > begun - 1 && good!.connectedAt! <= Date.now() / 1000);
      assert.deepEqual([good!.open, good!.failure], [1, null]);
      client.destroy();
      const dead = await openClient(world.ports.https);
      dead.write(helloWire({ serverName: NAME_DEAD }));
      await endingOf(dead);
      await until(async () => (await world.plane.findAttempts(NAME_DEAD))?.failedAt !== null);
      const bad = await world.plane.findAttempts(NAME_DEAD);
      assert.deepEqual([bad!.connectedAt, bad!.failure], [null, 'refused']);
      assert.equal(await world.plane.findAttempts(NAME_UNKNOWN), undefined);
    });

    test('an address that leads nowhere is told from an instance that refuses', async () => {
      await using world = await openWorld(create);
      // The kernel connects nobody to the broadcast address.
      await subject.change(world, [{ hostname: NAME_DEAD, ipv6: '::ffff:255.255.255.255' }]);
      const client = await openClient(world.ports.https);
      client.write(helloWire({ serverName: NAME_DEAD }));
      await endingOf(client);
      await until(async () => (await world.plane.findAttempts(NAME_DEAD))?.failedAt !== null);
      const { failure } = (await world.plane.findAttempts(NAME_DEAD))!;
      assert.equal(failure, subject.differs('unreachable') ? 'refused' : 'unreachable');
    });

    test('what passed to an instance is counted by its name, and not by others', async () => {
      await using world = await openWorld(create);
      world.tlsA.handle = echo;
      const nothing = { since: null, connections: 0, bytesToInstance: 0, bytesToClient: 0, requests: 0 };
      assert.deepEqual((await world.plane.findAttempts(NAME_A))!.traffic, nothing);
      const begun = Math.floor(Date.now() / 1000);
      for (let round = 0; round < 2; round++) {
        const client = await speak(world.ports.https);
        client.end();
        await endingOf(client);
      }
      const sent = 2 * HELLO.length;
      await until(async () => (await world.plane.findAttempts(NAME_A))!.traffic.bytesToClient >= sent);
      const { since, ...counted } = (await world.plane.findAttempts(NAME_A))!.traffic;
      assert.deepEqual(counted, { connections: 2, bytesToInstance: sent, bytesToClient: sent, requests: 0 });
      assert.ok(since! >= begun && since! <= Date.now() / 1000);
      assert.deepEqual((await world.plane.findAttempts(NAME_DEAD))!.traffic, nothing);
    });

    test('several planes on one port share what comes, and what one leaves the other has', async () => {
      let first: DataPlaneOptions | undefined;
      await using world = await openWorld((options) => {
        first = { ...options, sharePort: true };
        return create(first);
      });
      for (const instance of [world.tlsA, world.tlsB]) instance.handle = echo;
      const { http: httpPort, https: httpsPort } = world.ports;
      await using second = create({ ...first!, httpPort, httpsPort });
      second.replaceTable(ROUTES);
      await second.listen();
      const relayed = async (plane: DataPlane) => (await plane.stats()).tls.outcomes.relayed;
      for (let some = 0; (await relayed(world.plane)) === 0 || (await relayed(second)) === 0; some++) {
        assert.ok(some < 200, 'one of two has everything');
        (await speak(httpsPort)).destroy();
      }
      await second.close();
      const before = await relayed(world.plane);
      for (let some = 0; some < 10; some++) (await speak(httpsPort)).destroy();
      assert.equal(await relayed(world.plane), before + 10);
    });

    test('draining lets what is open come to its end, and takes nothing new', async () => {
      await using world = await openWorld(create);
      world.tlsA.handle = echo;
      const { https, http } = world.ports;
      const [finishing, staying] = [await speak(https), await speak(https)];
      let drained = false;
      const draining = world.plane.drain(60_000).then(() => {
        drained = true;
      });
      assert.equal(await endingOf(finishing.end('the last words')), 'end');
      for (const port of [https, http]) await until(() => isClosed(port));
      assert.equal(drained, false);
      assert.equal(await endingOf(staying.end()), 'end');
      await draining;
    });

    test('draining has a limit', async () => {
      await using world = await openWorld(create);
      world.tlsA.handle = echo;
      const staying = await speak(world.ports.https);
      const started = performance.now();
      const draining = world.plane.drain(300);
      assert.equal(await endingOf(staying), cutEnding());
      await draining;
      assert.ok(performance.now() - started >= 290);
    });
  });
}
