import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { connect as connectTls, createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { helloMessage, helloWire, inRecords, joined, record } from '../../../tls/testing/hello.ts';
import type { Subject } from '../subject.ts';
import { createCertificate } from './certificate.ts';
import {
  endingOf,
  expectTurnedAway,
  NAME_A,
  NAME_B,
  NAME_UNKNOWN,
  openClient,
  openWorld,
  readAll,
  readBytes,
  readLeft,
  until,
  type World,
} from './world.ts';

const alertBytes = (description: number) => Buffer.from([21, 3, 3, 0, 2, 2, description]);
const UNRECOGNIZED_NAME = alertBytes(112);
const DECODE_ERROR = alertBytes(50);

/** An instance with its own certificate that says who it is. */
function serveTls(commonName: string): (socket: Socket) => void {
  const server = createTlsServer(createCertificate(commonName), (socket) => {
    socket.on('error', () => {}).end(`this is ${commonName}`);
  });
  return (socket) => void server.emit('connection', socket);
}

function openTls(world: World, servername: string, options: object = {}): TLSSocket {
  const socket = connectTls({
    host: '127.0.0.1',
    port: world.ports.https,
    servername,
    rejectUnauthorized: false,
    ...options,
  });
  return socket;
}

/** What the gateway answers to some bytes, and how the connection ends. */
async function answerTo(world: World, wire: Uint8Array, read = readAll): Promise<Buffer> {
  const client = await openClient(world.ports.https);
  client.write(wire);
  const answer = await read(client);
  client.destroy();
  return answer;
}

export function tlsNamesSuite(subject: Subject): void {
  const { create } = subject;
  describe('TLS by server name', () => {
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      test(`${version}: the certificate that the client sees is the instance's own`, async () => {
        await using world = await openWorld(create);
        world.tlsA.handle = serveTls('instance a');
        world.tlsB.handle = serveTls('instance b');
        for (const [name, commonName] of [
          [NAME_A, 'instance a'],
          [NAME_B, 'instance b'],
          [NAME_A.toUpperCase(), 'instance a'],
        ] as const) {
          const client = openTls(world, name, { minVersion: version, maxVersion: version });
          await once(client, 'secureConnect');
          assert.equal(client.getProtocol(), version);
          assert.equal(client.getPeerCertificate().subject.CN, commonName);
          assert.equal(String(await readAll(client)), `this is ${commonName}`);
        }
      });
    }

    test('a real client learns that the name is unknown: alert unrecognized_name', async () => {
      await using world = await openWorld(create);
      for (const options of [{ servername: NAME_UNKNOWN }, { servername: '' }, { maxVersion: 'TLSv1.2' }]) {
        const [error] = await once(openTls(world, NAME_UNKNOWN, options), 'error').catch((thrown) => [
          thrown,
        ]);
        const seen = subject.differs('alerts') ? /ECONNRESET/ : /UNRECOGNIZED_NAME/;
        assert.match((error as NodeJS.ErrnoException).code ?? '', seen);
      }
      const { unknown_name, no_server_name } = (await world.plane.stats()).tls.outcomes;
      assert.deepEqual([unknown_name, no_server_name], [2, 1]);
    });

    test('the hello reaches the instance byte for byte, however it was cut', async () => {
      await using world = await openWorld(create);
      world.tlsA.handle = (socket) => void socket.pipe(socket);
      const message = helloMessage({ serverName: NAME_A });
      const wires = [1, 7, 100, 1000].map((size) => inRecords(message, size));
      wires.push(helloWire({ serverName: `${NAME_A.toUpperCase()}.` }));
      wires.push(helloWire({ serverName: NAME_A, keyShareBytes: 1216 }));
      wires.push(helloWire({ serverName: NAME_A, keyShareBytes: 17_000 }));
      for (const wire of wires) {
        const client = await openClient(world.ports.https);
        const sent = Buffer.from(joined(wire, Buffer.from('early data')));
        client.end(sent);
        const isCut = wire.length > 5 + (((wire[3] ?? 0) << 8) | (wire[4] ?? 0));
        if (isCut && subject.differs('cut_hellos')) assert.equal((await readLeft(client)).length, 0);
        else assert.deepEqual(await readAll(client), sent);
      }
    });

    test('the hello may arrive in segments, split at every byte', async () => {
      await using world = await openWorld(create);
      world.tlsA.handle = (socket) => void socket.pipe(socket);
      const wire = helloWire({ serverName: NAME_A });
      const splitAt = async (cut: number) => {
        const client = await openClient(world.ports.https);
        client.write(wire.subarray(0, cut));
        await new Promise((resolve) => setImmediate(resolve));
        client.end(wire.subarray(cut));
        assert.deepEqual(await readAll(client), Buffer.from(wire), `cut at ${cut}`);
      };
      await Promise.all(Array.from({ length: wire.length - 1 }, (_, index) => splitAt(index + 1)));

      const client = await openClient(world.ports.https);
      for (const byte of wire) {
        client.write(Uint8Array.of(byte));
        await new Promise((resolve) => setImmediate(resolve));
      }
      client.end();
      assert.deepEqual(await readAll(client), Buffer.from(wire));
    });

    test('refusals are answered with an alert and an orderly close', async () => {
      await using world = await openWorld(create);
      const manyBytes = new Uint8Array(200_000);
      const cases: [string, Uint8Array, Buffer][] = [
        ['unknown name', helloWire({ serverName: NAME_UNKNOWN }), UNRECOGNIZED_NAME],
        ['name below a known one', helloWire({ serverName: `x.${NAME_A}` }), UNRECOGNIZED_NAME],
        ['no server name', helloWire(), UNRECOGNIZED_NAME],
        [
          'unknown name, much more behind',
          joined(helloWire({ serverName: NAME_UNKNOWN }), manyBytes),
          UNRECOGNIZED_NAME,
        ],
        ['malformed', helloWire({ serverName: '' }), DECODE_ERROR],
        ['too long', helloWire({ serverName: NAME_A, keyShareBytes: 60_000 }), DECODE_ERROR],
        ['another handshake message', record(Uint8Array.of(2, 0, 0, 0)), DECODE_ERROR],
        ['plain HTTP', Buffer.from(`GET / HTTP/1.1\r\nHost: ${NAME_A}\r\n\r\n`), Buffer.alloc(0)],
        ['noise', Buffer.from([0, 1, 2, 3]), Buffer.alloc(0)],
      ];
      for (const [what, wire, expected] of cases) {
        if (subject.differs('alerts')) assert.equal((await answerTo(world, wire, readLeft)).length, 0, what);
        else assert.deepEqual(await answerTo(world, wire), expected, what);
      }
      const { malformed, no_server_name } = (await world.plane.stats()).tls.outcomes;
      const counted = subject.differs('malformed') ? [2, 2] : [3, 1];
      assert.deepEqual([malformed, no_server_name], counted);
      await until(async () => (await world.plane.stats()).tls.figures.open === 0);
    });

    test('a client that leaves before its hello is complete leaves nothing behind', async () => {
      await using world = await openWorld(create);
      const wire = helloWire({ serverName: NAME_A });
      for (const part of [0, 1, 5, 50]) {
        const closing = await openClient(world.ports.https);
        closing.end(wire.subarray(0, part));
        assert.equal(await endingOf(closing), 'end');
        const resetting = await openClient(world.ports.https);
        resetting.write(wire.subarray(0, part + 1));
        resetting.resetAndDestroy();
      }
      await until(async () => {
        const { figures, outcomes } = (await world.plane.stats()).tls;
        return figures.open === 0 && outcomes.gone === 8;
      });
    });

    test('a hello that does not come to its end in time is given up, however it trickles', async () => {
      await using world = await openWorld(create, { helloTimeoutMs: 150 });
      const silent = await openClient(world.ports.https);
      const trickling = await openClient(world.ports.https);
      const wire = helloWire({ serverName: NAME_A, keyShareBytes: 10_000 });
      let sent = 0;
      const trickle = setInterval(() => trickling.write(wire.subarray(sent, ++sent)), 10);
      await Promise.all([endingOf(silent), endingOf(trickling)]);
      clearInterval(trickle);
      assert.equal((await world.plane.stats()).tls.outcomes.hello_timeout, 2);
    });

    test('connections that never speak crowd out the oldest of their kind, and nobody else', async () => {
      await using world = await openWorld(create, { maxUndecided: 3 });
      world.tlsA.handle = (socket) => void socket.pipe(socket);
      const speaking = await openClient(world.ports.https);
      const wire = helloWire({ serverName: NAME_A });
      speaking.write(wire);
      await readBytes(speaking, wire.length);
      const first = await openClient(world.ports.https);
      const others = [];
      for (let i = 0; i < 3; i++) others.push(await openClient(world.ports.https));
      const isCrowding = !subject.differs('crowding_out');
      if (isCrowding) await endingOf(first);
      else others.push(first);
      speaking.end('still here');
      assert.equal(String(await readAll(speaking)), 'still here');
      await until(async () => (await world.plane.stats()).tls.figures.open === others.length);
      assert.equal((await world.plane.stats()).tls.outcomes.crowded_out, isCrowding ? 1 : 0);
      for (const other of others) other.destroy();
    });

    test('connections beyond the limit are closed at once; a free place is given again', async () => {
      await using world = await openWorld(create, { maxConnections: 2 });
      world.tlsA.handle = (socket) => void socket.pipe(socket);
      const wire = helloWire({ serverName: NAME_A });
      const open = async () => {
        const client = await openClient(world.ports.https);
        client.write(wire);
        return client;
      };
      const one = await open();
      const two = await open();
      await Promise.all([readBytes(one, wire.length), readBytes(two, wire.length)]);
      await expectTurnedAway(world.ports.https);
      assert.equal((await world.plane.stats()).tls.outcomes.too_many, 1);
      one.destroy();
      await until(async () => (await world.plane.stats()).tls.figures.open === 1);
      const three = await open();
      await readBytes(three, wire.length);
      for (const client of [two, three]) client.destroy();
    });
  });
}
