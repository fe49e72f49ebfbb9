import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { NAME_A, NAME_B, until } from '../testing/suite/world.ts';
import { Datagrams } from './testing/datagrams.ts';
import {
  CLIENT,
  hello,
  INSTANCE,
  id,
  instanceInitial,
  openQuicWorld,
  type QuicWorld,
  short,
} from './testing/quic-world.ts';
import { runOwn } from './testing/run-own.ts';

const VICTIM = '127.0.0.5';
/** Datagrams of this size fill what may be sent but for a rest. */
const FULL = 1200;
/** Fits into any buffer of a socket. */
const BATCH = 50;
const FIRST_UNHEARD = 64 * 1024;
const isRoot = process.getuid!() === 0;
const needsRoot = { skip: isRoot ? false : 'a raw socket needs root' };

/** A datagram to the gateway that somebody else sends in the name of the victim. */
async function spoof(world: QuicWorld, victim: Datagrams, bytes: Uint8Array): Promise<void> {
  const ports = [victim.port, world.ports.https].map(String);
  await runOwn(
    'spoof',
    [],
    [],
    VICTIM,
    ports[0]!,
    '127.0.0.1',
    ports[1]!,
    Buffer.from(bytes).toString('hex'),
  );
}

/** Where the gateway sends from what came next to an instance. */
async function next(instance: Datagrams) {
  await until(() => instance.heard.length > 0);
  return instance.heard.shift()!.from;
}

/** How many bytes go to clients when the instance says so many datagrams of the full size to a flow. */
async function pass(
  world: QuicWorld,
  instance: Datagrams,
  to: { port: number; address: string },
  count: number,
) {
  const figures = () => world.native.stats().quic.figures;
  const all = () => figures().quicBytesToClients + figures().quicHeldBack;
  const before = figures().quicBytesToClients;
  for (let left = count; left > 0; left -= BATCH) {
    const wanted = all() + Math.min(left, BATCH) * FULL;
    for (let number = 0; number < Math.min(left, BATCH); number++)
      instance.send(short(CLIENT, FULL - 1 - CLIENT.length), to.port, to.address);
    await until(() => all() === wanted);
  }
  return figures().quicBytesToClients - before;
}

/** A connection to the first instance that knows its id. */
async function openProven(world: QuicWorld, client: Datagrams): Promise<void> {
  client.send(hello(NAME_A), world.ports.https, '127.0.0.1');
  const flow = await next(world.instanceA);
  world.instanceA.send(instanceInitial(id(9)), flow.port, flow.address);
  await client.take(1);
  client.send(short(INSTANCE), world.ports.https, '127.0.0.1');
  await next(world.instanceA);
}

const inFull = (bytes: number) => Math.floor(bytes / FULL) * FULL;

describe('who sends datagrams of QUIC in the name of another', () => {
  test(
    'has three times as much sent there, though it moves a connection that is open',
    needsRoot,
    async () => {
      await using world = await openQuicWorld();
      await using client = await Datagrams.open('127.0.0.1');
      await using victim = await Datagrams.open(VICTIM);
      await openProven(world, client);
      await spoof(world, victim, short(INSTANCE, 900));
      const moved = await next(world.instanceA);
      assert.equal(world.count('moved'), 1);
      assert.equal(await pass(world, world.instanceA, moved, 240), inFull(3 * short(INSTANCE, 900).length));
    },
  );

  test(
    'has three times as much sent there by first packets, whatever the instance says',
    needsRoot,
    async () => {
      await using world = await openQuicWorld();
      await using victim = await Datagrams.open(VICTIM);
      const first = hello(NAME_A);
      await spoof(world, victim, first);
      const flow = await next(world.instanceA);
      world.instanceA.send(instanceInitial(id(9)), flow.port, flow.address);
      await victim.take(1);
      const rest = 3 * first.length - instanceInitial(id(9)).length;
      assert.equal(await pass(world, world.instanceA, flow, 240), inFull(rest));
      assert.equal(world.instanceA.heard.length, 0, 'and to the instance goes what came');
    },
  );

  test('proves nothing by an id that can be guessed, until it has sent a full datagram after an answer', async () => {
    await using world = await openQuicWorld();
    await using client = await Datagrams.open('127.0.0.1');
    const answer = instanceInitial(id(9), new Uint8Array(0));
    const held = () => world.native.stats().quic.figures.quicHeldBack;
    client.send(hello(NAME_A), world.ports.https, '127.0.0.1');
    const flow = await next(world.instanceA);
    world.instanceA.send(answer, flow.port, flow.address);
    await client.take(1);
    client.send(short(id(1)), world.ports.https, '127.0.0.1');
    await next(world.instanceA);
    assert.ok((await pass(world, world.instanceA, flow, 10)) < 4 * FULL && held() > 0);
    client.send(short(id(1), FULL), world.ports.https, '127.0.0.1');
    await next(world.instanceA);
    assert.equal(await pass(world, world.instanceA, flow, 10), 10 * FULL);
  });

  test('keeps its client from no port: the flows that it began there make room', needsRoot, async () => {
    await using world = await openQuicWorld();
    await using victim = await Datagrams.open(VICTIM);
    await openProven(world, victim);
    // One at a time: first packets that wait have a share of their own.
    for (let number = 20; number < 90; number++) {
      await spoof(world, victim, hello(NAME_B, id(number)));
      await next(world.instanceB);
    }
    assert.equal(world.count('client_limit'), 0);
    victim.send(hello(NAME_A, id(100)), world.ports.https, '127.0.0.1');
    await next(world.instanceA);
    victim.send(short(INSTANCE, 70), world.ports.https, '127.0.0.1');
    assert.deepEqual(await world.instanceA.take(1), [short(INSTANCE, 70)], 'what is proven stays');
    assert.equal(world.native.stats().quic.figures.quicOpen, 64);
  });
});

/** RFC 9000 section 8.2.2 asks for the first; quic-go, and others that do not know that a NAT moved them, send the second. */
const ANSWERS = { 'that fills a datagram': FULL, 'of a few bytes': 30 };

for (const [how, bytes] of Object.entries(ANSWERS))
  test(`a client that really moved gets as much as before, once it has given its instance an answer ${how}`, async () => {
    await using world = await openQuicWorld();
    await using client = await Datagrams.open('127.0.0.1');
    await using elsewhere = await Datagrams.open('127.0.0.3');
    await openProven(world, client);
    elsewhere.send(short(INSTANCE), world.ports.https, '127.0.0.1');
    const moved = await next(world.instanceA);
    const challenge = short(CLIENT, 100);
    world.instanceA.send(challenge, moved.port, moved.address);
    assert.deepEqual(await elsewhere.take(1), [challenge]);
    elsewhere.send(short(INSTANCE, bytes), world.ports.https, '127.0.0.1');
    await next(world.instanceA);
    const first = await pass(world, world.instanceA, moved, 60);
    assert.ok(first >= inFull(FIRST_UNHEARD));
    elsewhere.send(short(INSTANCE), world.ports.https, '127.0.0.1');
    await next(world.instanceA);
    assert.ok((await pass(world, world.instanceA, moved, 240)) > 2 * FIRST_UNHEARD - 2 * FULL);
  });
