import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { VERSION_1 } from '../../quic/packet.ts';
import { cutAt } from '../../quic/testing/flights.ts';
import { initialDatagram, longHead, padded } from '../../quic/testing/initials.ts';
import { helloMessage, joined } from '../../tls/testing/hello.ts';
import { NAME_A, until } from '../testing/suite/world.ts';
import { assertSame, Datagrams } from './testing/datagrams.ts';
import { CLIENT, hello, id, openQuicWorld, whileItStands } from './testing/quic-world.ts';

/** Datagrams that are kept for one client, and for all. */
const [PLACES_OF_ONE, PLACES] = [8, 64];

/** A 0-RTT packet; nobody but the instance can open it. */
const early = (destination: Uint8Array, fill = 0) =>
  joined(longHead(0xd0, VERSION_1, destination, CLIENT), Uint8Array.of(30), new Uint8Array(30).fill(fill));

describe('early data', () => {
  test('may stand before the Initial packet in its datagram', async () => {
    await using world = await openQuicWorld();
    await using client = await Datagrams.open('127.0.0.1');
    const both = joined(early(id(9)), hello(NAME_A));
    client.send(both, world.ports.https, '127.0.0.1');
    assertSame(await world.instanceA.take(1), [both]);
  });

  test('that comes before its hello follows it, whatever its size; that of no connection is dropped', async () => {
    await using world = await openQuicWorld();
    await using client = await Datagrams.open('127.0.0.1');
    await using other = await Datagrams.open('127.0.0.1');
    const { https } = world.ports;
    const flight = cutAt(helloMessage({ serverName: NAME_A, keyShareBytes: 1216 }), [700]).map(
      (piece, number) => initialDatagram([piece], { destination: id(9), source: CLIENT, number }),
    );
    const data = [early(id(9), 1), padded(early(id(9), 2)), early(id(9), 3)];
    await whileItStands(world, async () => {
      await other.sendAll([early(id(9)), padded(early(id(9)))], https, '127.0.0.1');
      await client.sendAll([...data, early(id(8)), ...flight], https, '127.0.0.1');
    });
    await until(() => world.instanceA.heard.length + world.count('stray') === 8);
    assert.equal(world.count('stray'), 3);
    const [first, second, ...rest] = await world.instanceA.take(5);
    assertSame([first!, second!], flight);
    // One that is large enough to begin a connection had its turn behind the others.
    assertSame(rest, [data[0]!, data[2]!, data[1]!]);
  });

  test('that is read together with its hello is not taken for nobody’s', async () => {
    await using world = await openQuicWorld();
    await using client = await Datagrams.open('127.0.0.1');
    const both = [hello(NAME_A), early(id(9))];
    await whileItStands(world, () => client.sendAll(both, world.ports.https, '127.0.0.1'));
    await until(() => world.instanceA.heard.length + world.count('stray') === 2);
    assert.equal(world.count('stray'), 0);
    assertSame(await world.instanceA.take(2), both);
  });

  test('has few places, some of them for one client', async () => {
    await using world = await openQuicWorld();
    const { https } = world.ports;
    await using first = await Datagrams.open('127.0.0.1');
    await using stack = new AsyncDisposableStack();
    const others: Datagrams[] = [];
    for (let number = 0; number < PLACES / PLACES_OF_ONE; number++)
      others.push(stack.use(await Datagrams.open(`127.0.1.${1 + number}`)));
    const many = Array.from({ length: PLACES_OF_ONE + 1 }, (_, number) => early(id(9), number));
    await whileItStands(world, async () => {
      await first.sendAll(many.slice(1), https, '127.0.0.1');
      for (const other of others) await other.sendAll(many, https, '127.0.0.1');
      for (const client of [first, others.at(-1)!]) await client.sendAll([hello(NAME_A)], https, '127.0.0.1');
    });
    const sent = PLACES_OF_ONE + others.length * many.length + 2;
    await until(() => world.instanceA.heard.length + world.count('stray') === sent);
    assertSame(
      world.instanceA.heard.map(({ bytes }) => bytes),
      [hello(NAME_A), hello(NAME_A), ...many.slice(0, PLACES_OF_ONE)],
    );
  });
});
