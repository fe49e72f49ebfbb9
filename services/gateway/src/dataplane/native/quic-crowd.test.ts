import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { initialDatagram, longHead, padded } from '../../quic/testing/initials.ts';
import { NAME_A, until } from '../testing/suite/world.ts';
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

/** Of one turn of the plane. */
const [READ, BEGUN] = [64, 16];
/** Datagrams of one client that may wait for their turn. */
const PLACES = 64;
/** At once, and in a millisecond after that. */
const [REFUSALS, REFUSALS_PER_MS] = [1000, 2];

/** The plane finds all that was sent meanwhile at once. */
async function whileItStands({ native }: QuicWorld, send: () => Promise<void>): Promise<void> {
  process.kill(native.pid!, 'SIGSTOP');
  try {
    await send();
  } finally {
    process.kill(native.pid!, 'SIGCONT');
  }
}

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
    await using world = await openQuicWorld();
    await using client = await Datagrams.open('127.0.0.1');
    const unknown = padded(longHead(0xc0, 0x1a2a3a4a, id(3), CLIENT));
    const startMs = performance.now();
    for (let sent = PLACES; sent <= 3 * REFUSALS; sent += PLACES) {
      await client.sendAll(
        Array.from({ length: PLACES }, () => unknown),
        world.ports.https,
        '127.0.0.1',
      );
      await until(() => world.count('unknown_version') === sent);
    }
    const most = REFUSALS + REFUSALS_PER_MS * Math.ceil(performance.now() - startMs + 1);
    assert.ok(client.heard.length <= most, `${client.heard.length} of ${most}`);
    assert.ok(client.heard.length >= BEGUN);
  });
});
