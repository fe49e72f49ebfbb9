import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { cryptoFrame, initialDatagram } from '../../quic/testing/initials.ts';
import { NAME_A, NAME_B, NAME_UNKNOWN, until } from '../testing/suite/world.ts';
import { Datagrams } from './testing/datagrams.ts';
import {
  CLIENT,
  hello,
  id,
  instanceInitial,
  openQuicWorld,
  type QuicWorld,
  short,
} from './testing/quic-world.ts';

/** Two flows of one client to the instance A, all that there may be; each is proven. @returns where each is at the instance */
async function fill(world: QuicWorld, client: Datagrams) {
  const ports: number[] = [];
  for (const number of [9, 10]) {
    client.send(hello(NAME_A, id(number)), world.ports.https, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 1);
    const { from } = world.instanceA.heard[0]!;
    world.instanceA.send(instanceInitial(id(number), id(number + 50)), from.port, from.address);
    await client.take(1);
    client.send(short(id(number + 50)), world.ports.https, '127.0.0.1');
    await world.instanceA.take(2);
    ports.push(from.port);
  }
  return ports;
}

describe('as many flows as there may be', () => {
  test('beyond the limit of connections nobody is taken', async () => {
    await using world = await openQuicWorld({ maxConnections: 1 });
    await using client = await Datagrams.open('127.0.0.1');
    client.send(hello(NAME_A, id(1)), world.ports.https, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 1);
    client.send(hello(NAME_B, id(2)), world.ports.https, '127.0.0.1');
    await until(() => world.count('too_many') === 1);
    // What is told to nobody is counted a moment before it ends.
    await until(() => world.native.stats().quic.figures.quicOpen === 1);
  });

  test('beyond it, a client that has none takes the oldest of the client that has most', async () => {
    await using world = await openQuicWorld({ maxConnections: 2 });
    const { https } = world.ports;
    await using many = await Datagrams.open('127.0.0.1');
    await using other = await Datagrams.open('127.0.0.3');
    await using late = await Datagrams.open('127.0.0.4');
    const [, second] = await fill(world, many);
    many.send(hello(NAME_B, id(11)), https, '127.0.0.1');
    await until(() => world.count('too_many') === 1);
    other.send(hello(NAME_B, id(12)), https, '127.0.0.1');
    await until(() => world.instanceB.heard.length === 1);
    late.send(hello(NAME_B, id(13)), https, '127.0.0.1');
    await until(() => world.count('too_many') === 2);
    await until(() => world.native.stats().quic.figures.quicOpen === 2);
    many.send(short(id(60)), https, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 1);
    assert.equal(world.instanceA.heard[0]!.from.port, second);
    assert.equal(world.native.stats().quic.figures.quicYielded, 1);
  });

  test('a flow that would take the place of the one that it moved from does not come about', async () => {
    await using world = await openQuicWorld({ maxConnections: 2 });
    await using client = await Datagrams.open('127.0.0.1');
    await using elsewhere = await Datagrams.open('127.0.0.3');
    const [first] = await fill(world, client);
    elsewhere.send(short(id(59)), world.ports.https, '127.0.0.1');
    await until(() => world.count('too_many') + world.count('crowded_out') === 1);
    assert.equal(world.count('too_many'), 1);
    client.send(short(id(59)), world.ports.https, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 1);
    assert.equal(world.instanceA.heard[0]!.from.port, first, 'it goes on');
    await until(() => world.native.stats().quic.figures.quicOpen === 2);
  });

  test('who says no name that leads anywhere takes no place, even where all are taken', async () => {
    await using world = await openQuicWorld({ maxConnections: 2, maxPerClient: 3 });
    const { https } = world.ports;
    await using client = await Datagrams.open('127.0.0.1');
    await using other = await Datagrams.open('127.0.0.3');
    const ports = await fill(world, client);
    const nothing = initialDatagram([], { destination: id(20), source: CLIENT, keysOf: id(200) });
    const half = initialDatagram([cryptoFrame(5, new Uint8Array(9))], {
      destination: id(21),
      source: CLIENT,
    });
    await other.sendAll([nothing, hello(NAME_UNKNOWN, id(22)), half], https, '127.0.0.1');
    await until(() => world.count('stray') + world.count('unknown_name') === 2);
    await until(() => world.native.stats().quic.figures.quicOpen === 3);
    client.send(short(id(59)), https, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 1);
    client.send(short(id(60)), https, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 2);
    assert.deepEqual(
      world.instanceA.heard.map(({ from }) => from.port),
      ports,
    );
    // Nor do its half hellos make the client look like one that has most, or has some.
    other.send(hello(NAME_B, id(23)), https, '127.0.0.1');
    await until(() => world.instanceB.heard.length === 1);
  });
});
