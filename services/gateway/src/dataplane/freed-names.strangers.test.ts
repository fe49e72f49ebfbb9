import assert from 'node:assert/strict';
import { connect, createServer } from 'node:http2';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { helloWire } from '../tls/testing/hello.ts';
import { NativeDataPlane } from './native/plane.ts';
import { builtForTests } from './native/testing/built.ts';
import type { CreateDataPlane } from './port.ts';
import { ask, serveHttp } from './testing/suite/http-client.ts';
import {
  ADDRESS_A,
  ADDRESS_B,
  endingOf,
  NAME_A,
  openClient,
  openWorld,
  readBytes,
  until,
  type World,
} from './testing/suite/world.ts';
import { TsDataPlane } from './ts/plane.ts';

const path = await builtForTests();
const PLANES: Readonly<Record<string, CreateDataPlane>> = {
  native: (options) => new NativeDataPlane({ ...options, path, onTrouble: (_, said) => assert.fail(said) }),
  typescript: (options) => new TsDataPlane(options),
};
const HELLO = Buffer.from(helloWire({ serverName: NAME_A }));
const echo = (socket: Socket) => void socket.pipe(socket);

/** The name of A is freed, and given to the instance of somebody else. */
function giveAway({ plane }: World): void {
  plane.applyChanges([{ hostname: NAME_A, ipv6: null }]);
  plane.applyChanges([{ hostname: NAME_A, ipv6: ADDRESS_B }]);
}

async function speak(world: World): Promise<Socket> {
  const client = await openClient(world.ports.https);
  client.write(HELLO);
  assert.deepEqual(await readBytes(client, HELLO.length), HELLO);
  return client;
}

const stateOf = async ({ plane }: World) => (await plane.findAttempts(NAME_A))!;

for (const [name, create] of Object.entries(PLANES))
  describe(`a name that is given to another instance, ${name}`, () => {
    test('what is open to the old one takes no place of the new one, and does not count as its', async () => {
      await using world = await openWorld(create, { maxPerInstance: 1 });
      world.tlsA.handle = echo;
      world.tlsB.handle = echo;
      const old = await speak(world);
      giveAway(world);
      assert.equal((await stateOf(world)).open, 0);
      const current = await speak(world);
      assert.equal(world.tlsB.sockets.size, 1, 'it reached the new one');
      old.write('still for the old one');
      assert.equal(String(await readBytes(old, 21)), 'still for the old one');
      old.end();
      await endingOf(old);
      await until(async () => (await world.plane.stats()).tls.figures.open === 1);
      const { open, traffic } = await stateOf(world);
      assert.deepEqual([open, traffic.connections, traffic.bytesToInstance], [1, 1, 0]);
      current.destroy();
    });

    test('an attempt that the old one does not answer is none of the new one', async () => {
      await using world = await openWorld(create);
      const hung: Socket[] = [];
      world.httpA.handle = (socket) => void hung.push(socket);
      const asking = ask(world.ports.http, NAME_A);
      await until(() => hung.length === 1);
      giveAway(world);
      hung[0]!.destroy();
      await asking;
      const { failedAt, failure } = await stateOf(world);
      assert.deepEqual([failedAt, failure], [null, null]);
    });

    test('a request that waits for the old one keeps none from the new one, nor counts as its', async () => {
      await using world = await openWorld(create, { maxPerInstance: 1 });
      const waiting: (() => void)[] = [];
      serveHttp(world.httpA, (_request, response) => void waiting.push(() => response.end('old')));
      serveHttp(world.httpB, (_request, response) => response.end('new'));
      const { http } = world.ports;
      const old = ask(http, NAME_A);
      await until(() => waiting.length === 1);
      giveAway(world);
      assert.equal(String((await ask(http, NAME_A)).body), 'new');
      waiting[0]!();
      assert.equal(String((await old).body), 'old', 'what was asked of the old one, it answers');
      assert.equal((await stateOf(world)).traffic.requests, 1);
    });

    test('the same over one connection of HTTP/2', async () => {
      await using world = await openWorld(create, { maxPerInstance: 1 });
      const waiting: (() => void)[] = [];
      const [first, second] = [createServer(), createServer()];
      first.on('stream', (stream) => {
        waiting.push(() => stream.end('old'));
      });
      second.on('stream', (stream) => void stream.end('new'));
      world.httpA.handle = (socket) => void first.emit('connection', socket);
      world.httpB.handle = (socket) => void second.emit('connection', socket);
      const session = connect(`http://127.0.0.1:${world.ports.http}`);
      const read = async () => {
        let text = '';
        for await (const chunk of session.request({ ':authority': NAME_A }).setEncoding('utf8'))
          text += chunk;
        return text;
      };
      const old = read();
      await until(() => waiting.length === 1);
      giveAway(world);
      assert.equal(await read(), 'new');
      waiting[0]!();
      assert.equal(await old, 'old');
      assert.equal((await stateOf(world)).traffic.requests, 1);
      session.destroy();
    });

    test('a table that is told anew keeps what is known of routes that stay', async () => {
      await using world = await openWorld(create);
      serveHttp(world.httpA, (_request, response) => response.end());
      await ask(world.ports.http, NAME_A);
      world.plane.replaceTable([{ hostname: NAME_A, ipv6: ADDRESS_A }]);
      assert.equal((await stateOf(world)).traffic.requests, 1);
      world.plane.replaceTable([{ hostname: NAME_A, ipv6: ADDRESS_B }]);
      assert.equal((await stateOf(world)).traffic.requests, 0);
      world.plane.replaceTable([]);
      assert.equal(await world.plane.findAttempts(NAME_A), undefined);
    });
  });
