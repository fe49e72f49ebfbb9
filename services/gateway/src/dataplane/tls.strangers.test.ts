import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { helloMessage, helloWire, inRecords } from '../tls/testing/hello.ts';
import { NativeDataPlane } from './native/plane.ts';
import { builtForTests } from './native/testing/built.ts';
import type { CreateDataPlane } from './port.ts';
import { isOwed, pour } from './testing/suite/unread.ts';
import { endingOf, NAME_A, openClient, openWorld, readBytes, until } from './testing/suite/world.ts';
import { TsDataPlane } from './ts/plane.ts';

const path = await builtForTests();
const PLANES: Readonly<Record<string, CreateDataPlane>> = {
  native: (options) => new NativeDataPlane({ ...options, path, onTrouble: (_, said) => assert.fail(said) }),
  typescript: (options) => new TsDataPlane(options),
};
/** What a busy machine does late is no other case. */
const PATIENT = { helloTimeoutMs: 600_000 };
const HELLO = Buffer.from(helloWire({ serverName: NAME_A, keyShareBytes: 1184 }));
const echo = (socket: Socket) => void socket.pipe(socket);

for (const [name, create] of Object.entries(PLANES))
  describe(`clients that say half or go, ${name}`, () => {
    test('who opens many ends its own, and not that of a slow client', async () => {
      await using world = await openWorld(create, { ...PATIENT, maxUndecided: 4 });
      world.tlsA.handle = echo;
      const { https } = world.ports;
      const outcomes = async () => (await world.plane.stats()).tls.outcomes;
      const slow = await openClient(https, '127.0.0.1', '127.0.0.2');
      slow.write(HELLO.subarray(0, 1000));
      const crowd: Socket[] = [];
      for (let index = 0; index < 6; index++) {
        const one = await openClient(https);
        one.write(HELLO.subarray(0, 1000));
        crowd.push(one);
      }
      await until(async () => (await outcomes()).crowded_out === 3);
      for (const gone of crowd.slice(0, 3)) await endingOf(gone);
      slow.write(HELLO.subarray(1000));
      assert.deepEqual(await readBytes(slow, HELLO.length), HELLO);
      for (const client of [slow, ...crowd]) client.destroy();
    });

    test('a client that resets its connection is noticed while its instance reads nothing, which then keeps nothing of it', async () => {
      await using world = await openWorld(create, PATIENT);
      const { https } = world.ports;
      world.tlsA.handle = (socket) => void socket.pause();
      const client = await openClient(https);
      client.write(HELLO);
      pour(client);
      await until(async () => (await isOwed(world.upstreamHttpsPort)) && (await isOwed(https)));
      client.resetAndDestroy();
      await until(async () => (await world.plane.stats()).tls.figures.open === 0);
      await until(async () => !(await isOwed(world.upstreamHttpsPort)));
    });

    test('those that are large have so much memory together; others are read', async () => {
      await using world = await openWorld(create, PATIENT);
      world.tlsA.handle = echo;
      const { https } = world.ports;
      const stats = async () => (await world.plane.stats()).tls;
      const large = inRecords(helloMessage({ serverName: NAME_A, keyShareBytes: 31_000 }), 1).subarray(
        0,
        60_000,
      );
      const crowd: Socket[] = [];
      for (let index = 0; index < 600; index++) {
        const one = await openClient(https);
        one.write(large);
        crowd.push(one);
      }
      await until(async () => (await stats()).outcomes.crowded_out >= 600 - (32 * 1024 * 1024) / 60_000);
      if (world.plane instanceof NativeDataPlane)
        assert.ok(world.plane.connectionBytes < 34 * 1024 * 1024, `${world.plane.connectionBytes}`);
      const honest = await openClient(https);
      honest.write(HELLO.subarray(0, 1000));
      await until(async () => (await stats()).figures.open + (await stats()).outcomes.crowded_out === 601);
      honest.write(HELLO.subarray(1000));
      assert.deepEqual(await readBytes(honest, HELLO.length), HELLO);
      for (const client of [honest, ...crowd]) client.destroy();
    });
  });
