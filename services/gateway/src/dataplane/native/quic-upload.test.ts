import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { joined } from '../../tls/testing/hello.ts';
import { NAME_A, NAME_B, until } from '../testing/suite/world.ts';
import { assertSame, Datagrams } from './testing/datagrams.ts';
import {
  hello,
  INSTANCE,
  id,
  instanceInitial,
  openQuicWorld,
  type QuicWorld,
  short,
} from './testing/quic-world.ts';

/** Bytes behind the id: those of one size travel together, and one that is smaller ends them. */
const RUNS = [1, 1, 1, 1191, 1191, 1191, 1191, 40, 1191, 900, 900, 1192, 30, 30, 29, 1443, 1443, 7];
/** As many as fit into a socket's buffer. */
const REPEATS = 3;

interface Flow {
  readonly name: string;
  readonly first: Uint8Array<ArrayBuffer>;
  readonly own: Uint8Array<ArrayBuffer>;
}

const FLOWS: readonly Flow[] = [
  { name: NAME_A, first: id(10), own: joined(INSTANCE, Uint8Array.of(1, 0, 0, 0)) },
  { name: NAME_B, first: id(11), own: joined(INSTANCE, Uint8Array.of(2, 0, 0, 0)) },
];

const instanceOf = (world: QuicWorld, { name }: Flow) =>
  name === NAME_A ? world.instanceA : world.instanceB;

/** What a client's connection takes to its instance. */
const connecting = ({ name, first, own }: Flow) => joined(hello(name, first), short(own));

/** A connection whose client has answered its instance. */
async function connect(flow: Flow, client: Datagrams, port: number, instance: Datagrams): Promise<void> {
  client.send(hello(flow.name, flow.first), port, '127.0.0.1');
  await until(() => instance.heard.length === 1);
  const { from } = instance.heard[0]!;
  instance.send(instanceInitial(flow.first, flow.own), from.port, from.address);
  await client.take(1);
  client.send(short(flow.own), port, '127.0.0.1');
  await until(() => instance.heard.length === 2);
  await instance.take(2);
}

/** What the client sends while the program stands still meets it all at once. */
async function sendAtOnce(
  world: QuicWorld,
  client: Datagrams,
  datagrams: readonly Uint8Array[],
): Promise<void> {
  await using behind = await Datagrams.open('127.0.0.1');
  const { pid } = world.native;
  process.kill(pid!, 'SIGSTOP');
  try {
    for (const bytes of datagrams) client.send(bytes, world.ports.https, '127.0.0.1');
    // One socket sends in order.
    client.send(id(0), behind.port, '127.0.0.1');
    await behind.take(1);
  } finally {
    process.kill(pid!, 'SIGCONT');
  }
}

/** Of both flows by turns: runs, then one by one. */
const upload = () =>
  Array.from({ length: (REPEATS + 4) * FLOWS.length }, (_, turn) => {
    const { own } = FLOWS[turn % FLOWS.length]!;
    const sizes = turn < REPEATS * FLOWS.length ? RUNS : [1191];
    const run = sizes.map((size, at) => joined(short(own, 0), new Uint8Array(size).fill(16 * turn + at)));
    return { own, run };
  });

describe('what clients send over QUIC', () => {
  test('comes out as it went in, though what has one size and one way travels together', async () => {
    await using world = await openQuicWorld();
    await using client = await Datagrams.open('127.0.0.1');
    for (const flow of FLOWS) await connect(flow, client, world.ports.https, instanceOf(world, flow));
    const counted = () => world.native.stats().quic.figures.quicBytesToInstances;
    // The program tells its figures now and then.
    const before = FLOWS.reduce((sum, flow) => sum + connecting(flow).length, 0);
    await until(() => counted() === before);
    const turns = upload();
    const stray = new Uint8Array(1199).fill(0xff);
    const datagrams = turns.flatMap(({ run }, turn) => (turn === 1 ? [stray, ...run] : run));
    await sendAtOnce(world, client, datagrams);
    for (const flow of FLOWS) {
      const wanted = turns.filter(({ own }) => own === flow.own).flatMap(({ run }) => run);
      assertSame(await instanceOf(world, flow).take(wanted.length), wanted);
    }
    await until(() => world.count('stray') === 1);
    const bytes = turns.flatMap(({ run }) => run).reduce((sum, one) => sum + one.length, 0);
    await until(() => counted() - before === bytes);
  });

  test('so does what comes joined, as another gateway sends it', async () => {
    await using world = await openQuicWorld();
    await using front = await openQuicWorld({}, { upstreamHttpsPort: world.ports.https });
    await using client = await Datagrams.open('127.0.0.1');
    const [flow] = FLOWS;
    await connect(flow!, client, front.ports.https, world.instanceA);
    const run = upload()[0]!.run;
    const datagrams = Array.from({ length: REPEATS }, () => run).flat();
    await sendAtOnce(front, client, datagrams);
    assertSame(await world.instanceA.take(datagrams.length), datagrams);
  });

  test('an instance that is gone ends its flow, and none that came with it', async () => {
    await using world = await openQuicWorld();
    await using client = await Datagrams.open('127.0.0.1');
    const [a, b] = FLOWS;
    await connect(a!, client, world.ports.https, world.instanceA);
    await world.instanceA[Symbol.asyncDispose]();
    const turns = Array.from({ length: 20 }, () => short(a!.own, 1191));
    // The flow ends when it is told; the first packet among them begins another.
    await sendAtOnce(world, client, [...turns, hello(b!.name, b!.first), ...turns]);
    assert.deepEqual(await world.instanceB.take(1), [hello(b!.name, b!.first)]);
    await until(() => world.native.stats().quic.figures.quicOpen === 1);
  });
});
