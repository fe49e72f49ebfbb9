import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { initialKeys } from '../../quic/keys.ts';
import { openInitial } from '../../quic/open.ts';
import { readPacket, VERSION_1, VERSION_2 } from '../../quic/packet.ts';
import { cutAt } from '../../quic/testing/flights.ts';
import { cryptoFrame, initialDatagram, longHead, padded } from '../../quic/testing/initials.ts';
import { helloMessage, joined } from '../../tls/testing/hello.ts';
import type { QuicOutcome } from '../figures.ts';
import { ADDRESS_A, NAME_A, NAME_B, NAME_DEAD, NAME_UNKNOWN, until } from '../testing/suite/world.ts';
import { assertSame, Datagrams } from './testing/datagrams.ts';
import { CLIENT, hello, INSTANCE, id, instanceInitial, openQuicWorld, short } from './testing/quic-world.ts';

/** Fits into any buffer of a socket. */
const BATCH = 50;

/** The error code of a CONNECTION_CLOSE in a server's Initial packet. */
function closeCode(bytes: Uint8Array, first: Uint8Array): number {
  const packet = readPacket(bytes);
  assert.ok(packet.type === 'initial' && packet.end === bytes.length);
  assert.deepEqual([packet.destination, packet.source], [CLIENT, first]);
  const payload = openInitial(initialKeys(packet.version, first, 'server'), bytes, packet);
  assert.ok(payload && payload[0] === 0x1c, 'it authenticates and closes');
  return ((payload[1]! & 0x3f) << 8) | payload[2]!;
}

describe('QUIC by name', () => {
  test('two names from one socket reach their instances, and answers the client, from where it asked', async () => {
    await using world = await openQuicWorld();
    for (const host of ['127.0.0.1', '::1']) {
      await using client = await Datagrams.open(host);
      const cases = [
        [NAME_A, world.instanceA, id(10)],
        [NAME_B, world.instanceB, id(11)],
      ] as const;
      for (const [name, instance, first] of cases) {
        // In two datagrams, the later one first.
        const pieces = cutAt(helloMessage({ serverName: name, keyShareBytes: 1216 }), [700]);
        const flight = pieces
          .reverse()
          .map((piece, number) => initialDatagram([piece], { destination: first, source: CLIENT, number }));
        for (const datagram of flight) client.send(datagram, world.ports.https, host);
        await until(() => instance.heard.length === 2);
        const { from } = instance.heard[0]!;
        assert.deepEqual(await instance.take(2), flight, 'as they came');
        const own = joined(INSTANCE, first);
        instance.send(instanceInitial(first, own), from.port, from.address);
        const [answer] = await client.take(1);
        assert.deepEqual(answer, instanceInitial(first, own));
      }
      // What follows is told apart by the ids that the instances chose.
      for (const [, instance, first] of cases) {
        client.send(short(joined(INSTANCE, first)), world.ports.https, host);
        assert.deepEqual(await instance.take(1), [short(joined(INSTANCE, first))]);
      }
    }
    assert.equal(world.count('forwarded'), 4);
    assert.equal(world.native.stats().quic.figures.quicOpen, 4);
  });

  test('who is not routed hears so at once, in both versions', async () => {
    await using world = await openQuicWorld({ answerTimeoutMs: 1_000 });
    await using client = await Datagrams.open('127.0.0.1');
    const codeOf = async (datagram: Uint8Array, first: Uint8Array) => {
      client.send(datagram, world.ports.https, '127.0.0.1');
      const [answer] = await client.take(1);
      assert.ok(answer!.length < datagram.length / 3);
      return closeCode(answer!, first);
    };
    assert.equal(await codeOf(hello(NAME_UNKNOWN), id(9)), 0x170);
    assert.equal(await codeOf(hello(NAME_UNKNOWN, id(12), VERSION_2), id(12)), 0x170);
    assert.equal(await codeOf(hello(undefined, id(13)), id(13)), 0x170);
    const broken = initialDatagram([cryptoFrame(0, Uint8Array.of(2))], {
      destination: id(14),
      source: CLIENT,
    });
    assert.equal(await codeOf(broken, id(14)), 0x132);
    assert.equal(await codeOf(hello(NAME_DEAD, id(15)), id(15)), 2);
    world.plane.applyChanges([{ hostname: NAME_A, ipv6: ADDRESS_A, proxyHeader: true }]);
    assert.equal(await codeOf(hello(NAME_A, id(16)), id(16)), 2);
    // This one takes datagrams and says nothing.
    assert.equal(await codeOf(hello(NAME_B, id(17)), id(17)), 2);
    const outcomes = {
      unknown_name: 2,
      no_server_name: 1,
      malformed: 1,
      connect_failed: 1,
      proxy_protocol: 1,
      unanswered: 1,
    };
    for (const [outcome, times] of Object.entries(outcomes))
      assert.equal(world.count(outcome as QuicOutcome), times, outcome);
    await until(() => world.native.stats().quic.figures.quicOpen === 0);
    await until(() => world.native.connectionBytes === 0);
  });

  test('another version is told which there are; what belongs to nothing is not answered', async () => {
    await using world = await openQuicWorld();
    await using client = await Datagrams.open('127.0.0.1');
    const strays = [
      short(id(1)),
      new Uint8Array(0),
      new Uint8Array(1200).fill(0xff).subarray(0, 1199),
      longHead(0xc0, 0x1a2a3a4a, id(3), CLIENT),
      hello(NAME_A).subarray(0, 1199),
      hello(NAME_A, id(4).subarray(1)),
      initialDatagram([], { destination: id(5), keysOf: id(6) }),
      padded(joined(longHead(0xe0, VERSION_1, id(3), CLIENT), Uint8Array.of(30), new Uint8Array(30))),
    ];
    for (const stray of strays) client.send(stray, world.ports.https, '127.0.0.1');
    await until(() => world.count('stray') === strays.length);
    await until(() => world.native.stats().quic.figures.quicOpen === 0);
    // They leave nothing behind.
    await until(() => world.native.connectionBytes === 0);
    client.send(padded(longHead(0xc0, 0x1a2a3a4a, id(3), CLIENT)), world.ports.https, '127.0.0.1');
    const [answer] = await client.take(1);
    assert.deepEqual(
      answer,
      joined(longHead(0xc0, 0, CLIENT, id(3)), Uint8Array.of(0, 0, 0, 1, 0x6b, 0x33, 0x43, 0xcf)),
    );
    assert.equal(client.heard.length, 0);
  });

  test('no more than three times what came goes to who has not shown an id of the instance, then ever more up to 1 MiB', async () => {
    await using world = await openQuicWorld();
    await using client = await Datagrams.open('127.0.0.1');
    client.send(hello(NAME_A), world.ports.https, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 1);
    const { bytes, from } = world.instanceA.heard[0]!;
    const answer = instanceInitial(id(9));
    const held = () => world.native.stats().quic.figures.quicHeldBack;
    const sent = () => world.native.stats().quic.figures.quicBytesToClients;
    /** The instance says so much, in so many datagrams, a batch at a time. */
    const say = async (count: number) => {
      for (let left = count; left > 0; left -= BATCH) {
        const batch = Math.min(left, BATCH);
        const wanted = held() + sent() + batch * 1200;
        for (let number = 0; number < batch; number++) world.instanceA.send(answer, from.port, from.address);
        await until(() => held() + sent() === wanted);
      }
    };
    await say(10);
    const allowed = Math.floor((3 * bytes.length) / 1200) * 1200;
    assert.deepEqual([sent(), held()], [allowed, 12_000 - allowed]);
    client.send(short(INSTANCE), world.ports.https, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 2);
    // So much as it had before its last datagram, and a little.
    for (let heard = 3, most = 0; most < 2 ** 20; heard++) {
      const before = sent();
      most = Math.min(before + 64 * 1024, 2 ** 20);
      await say(Math.min(900, Math.ceil(most / 1200) + 1));
      assert.equal(sent() - before, Math.floor(most / 1200) * 1200, 'an instance cannot flood who is gone');
      client.send(short(INSTANCE), world.ports.https, '127.0.0.1');
      await until(() => world.instanceA.heard.length === heard);
    }
    const before = sent();
    await say(1);
    assert.equal(sent() - before, 1200);
  });

  test('an id that the client chose itself proves nothing, though the instance takes it for its own', async () => {
    await using world = await openQuicWorld();
    await using client = await Datagrams.open('127.0.0.1');
    const figures = () => world.native.stats().quic.figures;
    client.send(hello(NAME_A), world.ports.https, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 1);
    const { from } = world.instanceA.heard[0]!;
    const answer = instanceInitial(id(9), id(9));
    world.instanceA.send(answer, from.port, from.address);
    await client.take(1);
    client.send(hello(NAME_A), world.ports.https, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 2);
    for (let number = 0; number < 20; number++) world.instanceA.send(answer, from.port, from.address);
    await until(() => figures().quicHeldBack + figures().quicBytesToClients === 21 * answer.length);
    assert.equal(figures().quicBytesToClients, Math.floor((6 * 1200) / answer.length) * answer.length);
  });

  test('datagrams of any sizes come out as they went in, though those of one size travel together', async () => {
    await using world = await openQuicWorld();
    await using client = await Datagrams.open('127.0.0.1');
    client.send(hello(NAME_A), world.ports.https, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 1);
    const { from } = world.instanceA.heard[0]!;
    world.instanceA.send(instanceInitial(id(9)), from.port, from.address);
    await client.take(1);
    client.send(short(INSTANCE), world.ports.https, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 2);
    const runs = [1, 1, 1, 1200, 1200, 1200, 1200, 40, 1200, 900, 900, 1201, 30, 30, 30, 29, 1452, 1452, 7];
    const sizes = Array.from({ length: 5 }, () => runs).flat();
    const sent = sizes.map((size, number) => new Uint8Array(size).fill(number % 128));
    for (const bytes of sent) world.instanceA.send(bytes, from.port, from.address);
    assertSame(await client.take(sent.length), sent);
  });

  test('a client that moves goes on: by an id that the instance chose, or where all from its address go to one', async () => {
    await using world = await openQuicWorld();
    await using client = await Datagrams.open('127.0.0.1');
    await using elsewhere = await Datagrams.open('::1');
    await using again = await Datagrams.open('127.0.0.1');
    const { https } = world.ports;
    client.send(hello(NAME_A), https, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 1);
    const { from } = world.instanceA.heard[0]!;
    world.instanceA.send(instanceInitial(id(9)), from.port, from.address);
    await client.take(1);
    elsewhere.send(short(INSTANCE), https, '::1');
    await until(() => world.instanceA.heard.length === 2);
    const moved = world.instanceA.heard[1]!.from;
    assert.notEqual(moved.port, from.port, 'the instance sees that it moved');
    world.instanceA.send(short(CLIENT), moved.port, moved.address);
    assert.deepEqual(await elsewhere.take(1), [short(CLIENT)], 'an answer goes where the client is now');
    again.send(short(id(77)), https, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 3);
    assert.equal(world.count('moved'), 2);
    // A second name at the same address, and nobody can tell which of them an unknown id is of.
    again.send(hello(NAME_B, id(31)), https, '127.0.0.1');
    await until(() => world.instanceB.heard.length === 1);
    const other = world.instanceB.heard[0]!.from;
    world.instanceB.send(instanceInitial(id(31), id(66)), other.port, other.address);
    await again.take(1);
    await using third = await Datagrams.open('127.0.0.1');
    third.send(short(id(78)), https, '127.0.0.1');
    await until(() => world.count('stray') === 1);
    third.send(short(id(66)), https, '127.0.0.1');
    await until(() => world.instanceB.heard.length === 2);
  });

  test('each client and each instance has its share, whatever TLS takes', async () => {
    await using world = await openQuicWorld({ maxPerClient: 40, maxPerInstance: 20 });
    await using client = await Datagrams.open('127.0.0.1');
    const flow = async (number: number, isProven: boolean) => {
      const before = world.instanceA.heard.length;
      client.send(hello(NAME_A, id(number)), world.ports.https, '127.0.0.1');
      await until(() => world.instanceA.heard.length > before);
      const own = joined(INSTANCE, id(number));
      const { from } = world.instanceA.heard.at(-1)!;
      world.instanceA.send(instanceInitial(id(number), own), from.port, from.address);
      await client.take(1);
      if (!isProven) return;
      client.send(short(own), world.ports.https, '127.0.0.1');
      await until(() => world.instanceA.heard.length > before + 1);
    };
    for (let number = 100; number < 115; number++) await flow(number, true);
    for (let number = 120; number < 125; number++) await flow(number, false);
    assert.equal(world.native.stats().quic.figures.quicOpen, 20);
    client.send(hello(NAME_A, id(130)), world.ports.https, '127.0.0.1');
    await until(() => world.count('instance_limit') === 1);
    // Half-open hellos: each is remembered until it is too old or there are too many.
    const half = (number: number) =>
      initialDatagram([cryptoFrame(5, new Uint8Array(9))], { destination: id(number), source: CLIENT });
    for (let number = 131; number < 151; number++) client.send(half(number), world.ports.https, '127.0.0.1');
    await until(() => world.native.stats().quic.figures.quicOpen === 40);
    client.send(half(160), world.ports.https, '127.0.0.1');
    client.send(hello(NAME_UNKNOWN, id(161)), world.ports.https, '127.0.0.1');
    await until(() => world.count('unknown_name') === 1);
    assert.equal(world.count('client_limit'), 0);
    assert.equal(
      world.native.stats().quic.figures.quicOpen,
      39,
      'for each, one of its own that is not proven went',
    );
  });

  test('who is not proven takes no place from who is: the oldest makes room', async () => {
    await using world = await openQuicWorld({ maxUndecided: 3 });
    await using client = await Datagrams.open('127.0.0.1');
    client.send(hello(NAME_A), world.ports.https, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 1);
    const { from } = world.instanceA.heard[0]!;
    world.instanceA.send(instanceInitial(id(9)), from.port, from.address);
    await client.take(1);
    client.send(short(INSTANCE), world.ports.https, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 2);
    for (let number = 20; number < 25; number++)
      client.send(hello(NAME_B, id(number)), world.ports.https, '127.0.0.1');
    await until(() => world.instanceB.heard.length === 5);
    await until(() => world.count('crowded_out') === 2);
    client.send(short(INSTANCE, 70), world.ports.https, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 3);
    // So does the newest of the others.
    client.send(
      initialDatagram([], { destination: id(24), source: CLIENT, number: 1 }),
      world.ports.https,
      '127.0.0.1',
    );
    await until(() => world.instanceB.heard.length === 6);
  });

  test('a crowd whose flows an instance answered keeps no newcomer out: who was silent for longest goes', async () => {
    await using world = await openQuicWorld({ maxUndecided: 3 });
    await using client = await Datagrams.open('127.0.0.1');
    for (let number = 40; number < 46; number++) {
      client.send(hello(NAME_A, id(number)), world.ports.https, '127.0.0.1');
      await until(() => world.instanceA.heard.length === 1);
      const { from } = world.instanceA.heard.pop()!;
      world.instanceA.send(instanceInitial(id(number), id(number + 100)), from.port, from.address);
      assert.deepEqual(await client.take(1), [instanceInitial(id(number), id(number + 100))]);
    }
    assert.equal(world.native.stats().quic.figures.quicOpen, 3);
    assert.equal(world.count('crowded_out'), 0);
  });

  test('a half hello is forgotten in time', async () => {
    await using world = await openQuicWorld({ helloTimeoutMs: 50 });
    await using client = await Datagrams.open('127.0.0.1');
    client.send(initialDatagram([cryptoFrame(5, new Uint8Array(9))]), world.ports.https, '127.0.0.1');
    await until(() => world.count('hello_timeout') === 1);
    await until(() => world.native.connectionBytes === 0);
  });
});
