import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { initialDatagram, longHead, padded } from '../../quic/testing/initials.ts';
import { joined } from '../../tls/testing/hello.ts';
import { NAME_A, NAME_B, NAME_UNKNOWN, until } from '../testing/suite/world.ts';
import { assertSame, Datagrams } from './testing/datagrams.ts';
import {
  CLIENT,
  hello,
  INSTANCE,
  id,
  instanceInitial,
  openQuicWorld,
  short,
  whileItStands,
} from './testing/quic-world.ts';

/** Of one turn of the plane. */
const [READ, BEGUN] = [64, 16];
/** Datagrams of one client that may wait for their turn. */
const PLACES = 64;

/** Where there may be many. */
const idOf = (number: number) => new Uint8Array(new Float64Array([number]).buffer);
const otherVersion = padded(longHead(0xc0, 0x1a2a3a4a, id(3), CLIENT));
const junk = (number: number) =>
  initialDatagram([], { destination: id(number), source: CLIENT, keysOf: id(200) });

describe('a crowd of first packets', () => {
  test('what a flow sends does not wait behind them', async () => {
    await using world = await openQuicWorld();
    const { https } = world.ports;
    await using proven = await Datagrams.open('127.0.0.1');
    await using newcomers = await Datagrams.open('127.0.0.1');
    proven.send(hello(NAME_A), https, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 1);
    const { from } = world.instanceA.heard[0]!;
    world.instanceA.send(instanceInitial(id(9)), from.port, from.address);
    await proven.take(1);
    await world.instanceA.take(1);
    const hellos = Array.from({ length: PLACES - 1 }, (_, number) => hello(NAME_A, id(100 + number)));
    await whileItStands(world, async () => {
      await newcomers.sendAll(hellos, https, '127.0.0.1');
      await proven.sendAll([short(INSTANCE)], https, '127.0.0.1');
    });
    const heard = await world.instanceA.take(PLACES);
    assert.deepEqual(heard[0], short(INSTANCE));
    assert.deepEqual(heard.slice(1), hellos, 'in their order');
  });

  test('one client has a share of the places where they wait', async () => {
    await using world = await openQuicWorld();
    const { https } = world.ports;
    await using crowd = await Datagrams.open('127.0.0.1');
    await using honest = await Datagrams.open('127.0.0.3');
    const flood = Array.from({ length: 2 * READ }, (_, number) => junk(number));
    await whileItStands(world, async () => {
      await crowd.sendAll(flood, https, '127.0.0.1');
      await honest.sendAll([hello(NAME_A)], https, '127.0.0.1');
    });
    assert.deepEqual(await world.instanceA.take(1), [hello(NAME_A)]);
    await until(() => world.count('stray') + world.count('crowded_out') === flood.length);
    assert.equal(world.count('crowded_out'), READ - BEGUN);
  });

  test('so many refusals and no more: nobody has us send them to others', async () => {
    await using world = await openQuicWorld({ maxRefusals: 3 * 16, refusalsPerSecond: 0 });
    const { https } = world.ports;
    await using client = await Datagrams.open('127.0.0.1');
    await client.sendAll([otherVersion, hello(NAME_UNKNOWN, id(4)), otherVersion], https, '127.0.0.1');
    await client.sendAll([otherVersion, hello(NAME_UNKNOWN, id(5))], https, '127.0.0.1');
    await until(() => world.count('unknown_version') + world.count('unknown_name') === 5);
    // What comes next to the client comes behind all of them.
    client.send(hello(NAME_A), https, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 1);
    const { from } = world.instanceA.heard[0]!;
    world.instanceA.send(instanceInitial(id(9)), from.port, from.address);
    const heard = await client.take(4);
    assert.deepEqual(heard[3], instanceInitial(id(9)));
    await using other = await Datagrams.open('127.0.0.3');
    other.send(otherVersion, https, '127.0.0.1');
    assert.equal((await other.take(1)).length, 1, 'another client has its own share');
  });

  test('a thousand clients of one address, as behind a NAT, are told at once', async () => {
    await using world = await openQuicWorld();
    const { https } = world.ports;
    await using client = await Datagrams.open('127.0.0.1');
    // No more at once than may wait of one client.
    for (let number = 0; number < 1_000; number += 50) {
      const hellos = Array.from({ length: 50 }, (_, more) => hello(NAME_UNKNOWN, idOf(number + more)));
      await client.sendAll(hellos, https, '127.0.0.1');
      await client.take(hellos.length);
    }
    assert.equal(world.count('unknown_name'), 1_000);
  });

  test('refusals come back with time', async () => {
    await using world = await openQuicWorld({ maxRefusals: 1, refusalsPerSecond: 16_000 });
    await using client = await Datagrams.open('127.0.0.1');
    await until(() => {
      client.send(otherVersion, world.ports.https, '127.0.0.1');
      return client.heard.length > 1;
    });
  });

  test('an instance that answers nobody gets no more of them, until it says something', async () => {
    await using world = await openQuicWorld({ maxUnanswered: 3, unansweredPerSecond: 0 });
    const { https } = world.ports;
    await using client = await Datagrams.open('127.0.0.1');
    const hellos = (first: number, count: number) =>
      Array.from({ length: count }, (_, number) => hello(NAME_B, id(first + number)));
    await client.sendAll(hellos(20, 5), https, '127.0.0.1');
    await until(() => world.count('instance_silent') + world.instanceB.heard.length === 5);
    assert.equal(world.count('instance_silent'), 2);
    assert.equal((await client.take(2)).length, 2, 'who is refused is told so');
    const refused = (await world.plane.findAttempts(NAME_B))!.quic!;
    assert.ok(refused.answeredAt === null && refused.refusedAt! > 0);
    // Others do not suffer for it.
    client.send(hello(NAME_A), https, '127.0.0.1');
    await world.instanceA.take(1);
    const { from } = world.instanceB.heard[0]!;
    await world.instanceB.take(3);
    world.instanceB.send(instanceInitial(id(20)), from.port, from.address);
    assert.deepEqual(await client.take(1), [instanceInitial(id(20))]);
    await client.sendAll(hellos(30, 3), https, '127.0.0.1');
    assertSame(await world.instanceB.take(3), hellos(30, 3));
    const { answeredAt } = (await world.plane.findAttempts(NAME_B))!.quic!;
    assert.ok(answeredAt! >= refused.refusedAt!);
  });

  test('an instance that answers gets as many at once as come', async () => {
    await using world = await openQuicWorld({ maxUnanswered: 2, unansweredPerSecond: 1 });
    const { instanceA } = world;
    await using client = await Datagrams.open('127.0.0.1');
    let number = 0;
    /** How many of so many more hellos, all at once, come to the instance. */
    const passing = async (count: number) => {
      const refused = world.count('instance_silent');
      const hellos = Array.from({ length: count }, () => hello(NAME_A, idOf(++number)));
      await whileItStands(world, () => client.sendAll(hellos, world.ports.https, '127.0.0.1'));
      await until(() => instanceA.heard.length + world.count('instance_silent') - refused === count);
      return instanceA.heard.length;
    };
    // On a machine that stands still for a second its answer may be too old: then again.
    await until(async () => {
      if ((await passing(1)) === 0) return false;
      const { from } = instanceA.heard.pop()!;
      const answer = instanceInitial(idOf(number), joined(INSTANCE, idOf(number)));
      instanceA.send(answer, from.port, from.address);
      await until(() => client.heard.some(({ bytes }) => Buffer.from(bytes).equals(answer)));
      const passed = await passing(10);
      instanceA.heard.length = 0;
      return passed === 10;
    });
  });

  test('one that says nothing yet is tried now and then', async () => {
    await using world = await openQuicWorld({ maxUnanswered: 1, unansweredPerSecond: 1_000 });
    await using client = await Datagrams.open('127.0.0.1');
    let number = 0;
    await until(() => {
      client.send(hello(NAME_B, idOf(++number)), world.ports.https, '127.0.0.1');
      return world.instanceB.heard.length > 2;
    });
  });
});

test('of an address with very many flows nobody looks at all for each datagram that may belong to one', async () => {
  await using world = await openQuicWorld();
  const { https } = world.ports;
  /** Flows of one port, and those of an address that are looked at. */
  const [OF_A_PORT, LOOKED_AT] = [60, 128];
  await using stack = new AsyncDisposableStack();
  let open = 0;
  while (open <= LOOKED_AT) {
    const client = stack.use(await Datagrams.open('127.0.0.1'));
    const first = open;
    const hellos = Array.from({ length: OF_A_PORT }, (_, number) => hello(NAME_A, idOf(first + number)));
    await client.sendAll(hellos, https, '127.0.0.1');
    await until(() => world.instanceA.heard.length === OF_A_PORT);
    for (const { from } of world.instanceA.heard.splice(0)) {
      const answer = instanceInitial(idOf(open), joined(INSTANCE, idOf(open)));
      world.instanceA.send(answer, from.port, from.address);
      open++;
    }
    await client.take(OF_A_PORT);
  }
  await using moved = await Datagrams.open('127.0.0.1');
  moved.send(short(id(77)), https, '127.0.0.1');
  await until(() => world.count('stray') + world.count('moved') === 1);
  assert.equal(world.count('stray'), 1);
  // An id that is known needs no looking.
  moved.send(short(joined(INSTANCE, idOf(0))), https, '127.0.0.1');
  await world.instanceA.take(1);
});

describe('what the kernel drops', () => {
  /** More than it keeps of what is not read. */
  const [COUNT, BYTES] = [400, 60_000];
  const large = Array.from({ length: COUNT }, () => new Uint8Array(BYTES));

  test('is counted, of what clients send', async () => {
    await using world = await openQuicWorld();
    await using client = await Datagrams.open('127.0.0.1');
    await whileItStands(world, () => client.sendAll(large, world.ports.https, '127.0.0.1'));
    // It is told with what comes next.
    client.send(hello(NAME_A), world.ports.https, '127.0.0.1');
    const dropped = () => world.native.stats().quic.figures.quicDroppedToInstances;
    await until(() => world.count('stray') + dropped() === COUNT);
    assert.ok(dropped() > 0);
  });

  test('is counted, of what instances send', async () => {
    await using world = await openQuicWorld();
    await using client = await Datagrams.open('127.0.0.1');
    client.send(hello(NAME_A), world.ports.https, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 1);
    const { from } = world.instanceA.heard[0]!;
    await whileItStands(world, () => world.instanceA.sendAll(large, from.port, from.address));
    const figures = () => world.native.stats().quic.figures;
    await until(() => {
      world.instanceA.send(Uint8Array.of(1), from.port, from.address);
      return figures().quicDroppedToClients > 0;
    });
    const read = () => Math.floor((figures().quicHeldBack + figures().quicBytesToClients) / BYTES);
    await until(() => read() + figures().quicDroppedToClients === COUNT);
  });
});
