import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import { helloWire } from '../../../tls/testing/hello.ts';
import type { Subject } from '../subject.ts';
import { createCertificate } from './certificate.ts';
import { openFullListener } from './full-listener.ts';
import {
  ADDRESS_A,
  ADDRESS_B,
  endingOf,
  NAME_A,
  NAME_B,
  NAME_DEAD,
  openClient,
  openWorld,
  readAll,
  readBytes,
  readLeft,
  until,
  type World,
} from './world.ts';

const MEGABYTE = 1024 * 1024;
const BULK_BYTES = 30 * MEGABYTE;
/** The largest that this kernel makes a TCP buffer (tcp(7)). */
const largestBuffer = (kind: 'rmem' | 'wmem') =>
  Number(readFileSync(`/proc/sys/net/ipv4/tcp_${kind}`, 'utf8').trim().split(/\s+/)[2]);
/** Kernel buffers on both sides of the relay and its own. The kernel lets one grow where a relay is fast. */
const MAX_IN_FLIGHT_BYTES = largestBuffer('rmem') + 2 * largestBuffer('wmem') + 8 * MEGABYTE;

const HELLO = helloWire({ serverName: NAME_A });
const digestOf = (...parts: Uint8Array[]) => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex');
};

/** Data that differs everywhere, so that a lost or doubled piece shows in the digest. */
function bulk(bytes: number): Buffer {
  const block = randomBytes(64 * 1024);
  const data = Buffer.alloc(bytes);
  for (let at = 0; at < bytes; at += block.length) {
    block.writeUInt32LE(at, 0);
    block.copy(data, at);
  }
  return data;
}

/** Nothing here runs meanwhile: neither the plane, nor an instance. The end of the connection is told. */
const CONNECT_APART = `
  const [port, hello] = process.argv.slice(1);
  const socket = require('node:net').connect(Number(port), '127.0.0.1', () => socket.write(Buffer.from(hello, 'hex')));
  socket.on('error', () => {}).on('close', () => process.stdout.write('refused')).resume();
`;
/** Only a connection that is taken lasts as long. */
const HANG_MS = 100_000;

/** A connection through the gateway to an instance that has read the hello, both ends in hand. */
async function openPair(world: World): Promise<{ client: Socket; instance: Socket }> {
  const accepted = new Promise<Socket>((resolve) => {
    world.tlsA.handle = resolve;
  });
  const client = await openClient(world.ports.https);
  client.write(HELLO);
  const instance = await accepted;
  await readBytes(instance, HELLO.length);
  return { client, instance };
}

export function tlsRelaySuite(subject: Subject): void {
  const { create } = subject;
  /** How a client learns that its instance is gone. */
  const cutEnding = () => (subject.differs('orderly_ends') ? 'end' : 'reset');
  describe('relay of TLS connections', () => {
    test('half-close by the client: a whole upload, then the answer', async () => {
      await using world = await openWorld(create);
      const { client, instance } = await openPair(world);
      const data = bulk(BULK_BYTES);
      client.end(data);
      assert.equal(digestOf(await readAll(instance)), digestOf(data));
      instance.end('received');
      assert.equal(String(await readAll(client)), 'received');
    });

    test('half-close by the instance: the client goes on sending', async () => {
      await using world = await openWorld(create);
      const { client, instance } = await openPair(world);
      const data = bulk(BULK_BYTES);
      instance.end(data);
      assert.equal(digestOf(await readAll(client)), digestOf(data));
      client.end(data);
      assert.equal(digestOf(await readAll(instance)), digestOf(data));
      await until(async () => (await world.plane.stats()).tls.figures.open === 0);
      const { bytesToInstances, bytesToClients } = (await world.plane.stats()).tls.figures;
      assert.deepEqual([bytesToInstances, bytesToClients], [HELLO.length + BULK_BYTES, BULK_BYTES]);
    });

    test('real TLS, 30 MB in each direction at once', async () => {
      await using world = await openWorld(create);
      const server = createTlsServer(createCertificate('a'), (socket) => socket.pipe(socket));
      world.tlsA.handle = (socket) => void server.emit('connection', socket);
      const client = connectTls({
        host: '127.0.0.1',
        port: world.ports.https,
        servername: NAME_A,
        rejectUnauthorized: false,
      });
      const data = bulk(BULK_BYTES);
      client.end(data);
      assert.equal(digestOf(await readAll(client)), digestOf(data));
    });

    test('a reader that stops holds the sender back, and loses nothing', async () => {
      await using world = await openWorld(create);
      const { client, instance } = await openPair(world);
      const block = bulk(MEGABYTE);
      // Far more than may be in flight.
      const blocks = Math.ceil((1.5 * MAX_IN_FLIGHT_BYTES) / MEGABYTE);
      let written = 0;
      const send = async () => {
        for (; written < blocks; written++) {
          if (!instance.write(block)) await once(instance, 'drain');
        }
        instance.end();
      };
      const sent = send();
      // A failure here shall not be hidden by the one that follows from it.
      sent.catch(() => {});
      const taken = () => instance.bytesWritten - instance.writableLength;
      await stalled(taken);
      assert.ok(taken() < MAX_IN_FLIGHT_BYTES, `${taken()} bytes were taken for a client that reads nothing`);
      const received = await readAll(client);
      await sent;
      assert.equal(digestOf(received), digestOf(...Array.from({ length: blocks }, () => block)));
    });

    test('a reset of either side resets the other', async () => {
      await using world = await openWorld(create);
      const first = await openPair(world);
      first.client.resetAndDestroy();
      assert.equal(await endingOf(first.instance), 'reset');
      const second = await openPair(world);
      second.instance.resetAndDestroy();
      assert.equal(await endingOf(second.client), cutEnding());
      await until(async () => (await world.plane.stats()).tls.figures.open === 0);
    });

    test('an instance that refuses: the client is reset at once', async () => {
      await using world = await openWorld(create);
      const client = await openClient(world.ports.https);
      client.write(helloWire({ serverName: NAME_DEAD }));
      assert.equal(await endingOf(client), cutEnding());
      assert.equal((await world.plane.stats()).tls.outcomes.connect_failed, 1);
    });

    test('an instance that does not answer: the client is reset after the connect timeout', async () => {
      await using world = await openWorld(create, { connectTimeoutMs: 200 });
      await using _full = await openFullListener('127.0.0.9', world.upstreamHttpsPort);
      const client = await openClient(world.ports.https);
      client.write(helloWire({ serverName: NAME_DEAD }));
      assert.equal(await endingOf(client), cutEnding());
      assert.equal((await world.plane.stats()).tls.outcomes.connect_failed, 1);
    });

    test('a connection on which nothing moves ends after the idle timeout', async () => {
      await using world = await openWorld(create, { idleTimeoutMs: 200 });
      const accepted = new Promise<Socket>((resolve) => {
        world.tlsA.handle = resolve;
      });
      const client = await openClient(world.ports.https);
      client.write(HELLO);
      const ends = Promise.all([endingOf(client), accepted.then(endingOf)]);
      assert.deepEqual(await ends, [cutEnding(), cutEnding()]);
    });

    test('traffic in one direction alone keeps a connection from being idle', async () => {
      const idleTimeoutMs = 1_000;
      await using world = await openWorld(create, { idleTimeoutMs });
      // Where this machine paused for as long as half of it, nothing is proven: it begins anew.
      while ((await talkFor(world, 3 * idleTimeoutMs, idleTimeoutMs / 2)) === 'paused');
    });

    test('changes of routes touch no open connection, and count for the next', async () => {
      await using world = await openWorld(create);
      const { client, instance } = await openPair(world);
      world.tlsB.handle = (socket) => void socket.pipe(socket);
      await subject.change(world, [{ hostname: NAME_A, ipv6: ADDRESS_B }]);
      const moved = await openClient(world.ports.https);
      moved.end(HELLO);
      assert.deepEqual(await readAll(moved), Buffer.from(HELLO));
      await subject.change(world, [{ hostname: NAME_A, ipv6: null }]);
      const gone = await openClient(world.ports.https);
      gone.end(HELLO);
      assert.equal((await readLeft(gone)).at(-1), subject.differs('alerts') ? undefined : 112);
      world.plane.replaceTable([{ hostname: NAME_B, ipv6: ADDRESS_B }]);
      assert.equal((await world.plane.stats()).routes, 1);
      instance.end('still joined');
      assert.equal(String(await readAll(client)), 'still joined');
      client.end('both ways');
      assert.equal(String(await readAll(instance)), 'both ways');
    });

    test('a change counts for each connection opened after it, while others keep coming', async () => {
      await using world = await openWorld(create);
      for (const [instance, name] of [
        [world.tlsA, 'a'],
        [world.tlsB, 'b'],
      ] as const)
        instance.handle = (socket) => void socket.resume().end(name);
      const answerTo = async (serverName: string) => {
        const client = await openClient(world.ports.https);
        client.end(helloWire({ serverName }));
        return String(await readAll(client));
      };
      let left = 200;
      const others = Array.from({ length: 8 }, async () => {
        while (left > 0) assert.equal(await answerTo(NAME_B), 'b');
      });
      const change = async () => {
        for (; left > 0; left--) {
          const [ipv6, answer] = left % 2 ? [ADDRESS_A, 'a'] : [ADDRESS_B, 'b'];
          await subject.change(world, [{ hostname: NAME_A, ipv6 }]);
          assert.equal(await answerTo(NAME_A), answer);
        }
      };
      await Promise.all([change(), ...others]);
    });

    test('where changes count later, one that nobody has told yet does not', async () => {
      // Elsewhere each test that changes routes looks at once.
      if (!subject.differs('late_changes')) return;
      await using world = await openWorld(create);
      world.plane.applyChanges([{ hostname: 'new.example', ipv6: ADDRESS_A }]);
      const hello = Buffer.from(helloWire({ serverName: 'new.example' }));
      const ending = execFileSync(
        process.execPath,
        ['-e', CONNECT_APART, String(world.ports.https), hello.toString('hex')],
        { timeout: HANG_MS },
      );
      assert.equal(String(ending), 'refused');
    });

    test('every address that it was told to listen on', async () => {
      await using world = await openWorld(create);
      world.tlsA.handle = (socket) => void socket.pipe(socket);
      for (const host of ['127.0.0.1', '::1']) {
        const client = await openClient(world.ports.https, host);
        client.end(HELLO);
        assert.deepEqual(await readAll(client), Buffer.from(HELLO));
        const web = await openClient(world.ports.http, host);
        web.end('GET / HTTP/1.1\r\n\r\n');
        assert.match(String(await readAll(web)), /^HTTP\/1.1 400/);
      }
    });

    test('many connections of every kind at once', async () => {
      await using world = await openWorld(create);
      world.tlsA.handle = (socket) => void socket.pipe(socket);
      world.tlsB.handle = (socket) => void socket.pipe(socket);
      const echo = async (serverName: string, bytes: number) => {
        const client = await openClient(world.ports.https);
        const data = Buffer.concat([helloWire({ serverName }), bulk(bytes)]);
        client.end(data);
        assert.equal(digestOf(await readAll(client)), digestOf(data));
      };
      const leave = async () => {
        const client = await openClient(world.ports.https);
        client.write(HELLO);
        await readBytes(client, HELLO.length);
        client.resetAndDestroy();
      };
      const all = Array.from({ length: 40 }, (_, i) => [
        echo(i % 2 ? NAME_A : NAME_B, i * 50_000),
        leave(),
      ]).flat();
      await Promise.all(all);
      await until(async () => (await world.plane.stats()).tls.figures.open === 0);
    });
  });
}

/**
 * An instance talks to a client that says nothing, and everything comes through until the time is over; but where for
 * `pauseMs` nothing came, the machine was busy with something else.
 */
async function talkFor(world: World, forMs: number, pauseMs: number): Promise<'lasted' | 'paused'> {
  const { client, instance } = await openPair(world);
  const started = performance.now();
  let heard = started;
  let longestMs = 0;
  const look = () => {
    longestMs = Math.max(longestMs, performance.now() - heard);
  };
  client.on('data', () => {
    look();
    heard = performance.now();
  });
  const talk = setInterval(() => instance.write('.'), 20);
  await until(() => {
    look();
    return client.destroyed || longestMs > pauseMs || performance.now() - started > forMs;
  });
  clearInterval(talk);
  if (longestMs > pauseMs) {
    client.destroy();
    return 'paused';
  }
  assert.equal(client.destroyed, false);
  instance.end();
  client.end();
  return 'lasted';
}

/** Waits until a figure has stopped growing. */
async function stalled(read: () => number): Promise<void> {
  const STILL_MS = 300;
  let last = -1;
  let since = performance.now();
  await until(() => {
    const now = read();
    if (now !== last) since = performance.now();
    last = now;
    return performance.now() - since > STILL_MS;
  });
}
