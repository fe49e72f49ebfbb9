import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { helloWire } from '../tls/testing/hello.ts';
import { NativeDataPlane } from './native/plane.ts';
import { builtForTests } from './native/testing/built.ts';
import type { AccessRecord, Refusal } from './port.ts';
import { NAME_A, openClient, openWorld, readBytes, until, type World } from './testing/suite/world.ts';

const path = await builtForTests();
const HELLO = helloWire({ serverName: NAME_A });
const MIB = 2 ** 20;
const MAX_STALLED_BYTES = 64 * MIB;
const ZEROS = Buffer.alloc(65_536);
/** With those who read. */
const MAX_SLOW_BYTES = 2 * MAX_STALLED_BYTES;
const CROWD = 60;

/** Sends as much as the other side takes. */
function pour(socket: Socket): void {
  const more = () => {
    while (!socket.destroyed && socket.write(ZEROS));
  };
  socket.on('drain', more);
  more();
}

async function openSmall(
  told: { refusals: Refusal[]; records: AccessRecord[] },
  maxStalledBytes = MAX_STALLED_BYTES,
): Promise<World> {
  return await openWorld(
    (options) =>
      new NativeDataPlane({
        ...options,
        path,
        onRefused: (refusal) => told.refusals.push(refusal),
        access: { every: 1, tell: (record) => told.records.push(record) },
        onTrouble: (_, said) => assert.fail(said),
      }),
    { maxStalledBytes },
  );
}

/** A client that reads nothing but what it is asked to. */
async function begin({ ports }: World, from: string): Promise<Socket> {
  const client = await openClient(ports.https, '127.0.0.1', from);
  client.write(HELLO);
  return client;
}

const countsOf = async ({ plane }: World) => (await plane.stats()).tls;

describe('clients that take nothing of what comes for them', () => {
  test('the network that holds most loses its connections; who reads goes on, and so does another that holds little', async () => {
    const told = { refusals: [] as Refusal[], records: [] as AccessRecord[] };
    await using world = await openSmall(told);
    world.tlsA.handle = pour;
    const alone = await begin(world, '127.0.2.1');
    const reader = await begin(world, '127.0.3.1');
    const crowd = await Promise.all(Array.from({ length: CROWD }, () => begin(world, '127.0.1.1')));
    await until(async () => {
      await readBytes(reader, ZEROS.length);
      const { outcomes, figures } = await countsOf(world);
      return outcomes.stalled > 0 && figures.stalledBytes <= MAX_SLOW_BYTES;
    });
    // No more: who reads much is offered much, and would hold more than the crowd.
    for (const client of [reader, alone]) await readBytes(client, MIB);
    const { outcomes, figures } = await countsOf(world);
    assert.equal(figures.open + outcomes.stalled, CROWD + 2);
    await until(() => told.refusals.some(({ reason }) => reason === 'stalled'));
    assert.deepEqual([...new Set(told.refusals.map(({ network }) => network))], ['127.0.1.0/24']);
    const ended = told.records.filter(({ outcome }) => outcome === 'stalled');
    assert.ok(ended.length > 0 && ended.every(({ clientAddress }) => clientAddress === '127.0.1.1'));
    for (const client of [reader, alone, ...crowd]) client.destroy();
    await until(async () => (await countsOf(world)).figures.open === 0);
    assert.equal((await countsOf(world)).figures.stalledBytes, 0, 'what is given back is not counted');
  });

  test('what clients send to an instance that reads nothing counts as theirs, too', async () => {
    const told = { refusals: [] as Refusal[], records: [] as AccessRecord[] };
    await using world = await openSmall(told);
    world.tlsA.handle = (socket) => void socket.pause();
    const clients = await Promise.all(Array.from({ length: CROWD }, () => begin(world, '127.0.1.1')));
    for (const client of clients) pour(client);
    await until(async () => {
      const { outcomes, figures } = await countsOf(world);
      return outcomes.stalled > 0 && figures.stalledBytes <= MAX_STALLED_BYTES;
    });
    for (const client of clients) client.destroy();
  });

  test('many who have just begun to read slowly, behind one address, lose nothing while all of TCP has room for them', async () => {
    const told = { refusals: [] as Refusal[], records: [] as AccessRecord[] };
    const limit = 16 * MIB;
    await using world = await openSmall(told, limit);
    const answer = Buffer.alloc(MIB);
    world.tlsA.handle = (socket) => void socket.write(answer);
    // Together more than stalled ones may hold, and less than twice as much.
    const clients = await Promise.all(Array.from({ length: 24 }, () => begin(world, '127.0.1.1')));
    await until(async () => {
      const { outcomes, figures } = await countsOf(world);
      return outcomes.stalled > 0 || figures.stalledBytes > limit;
    });
    for (const client of clients) await readBytes(client, answer.length);
    assert.equal((await countsOf(world)).outcomes.stalled, 0);
    for (const client of clients) client.destroy();
  });

  test('a download that its instance ended counts until it is taken', async () => {
    const told = { refusals: [] as Refusal[], records: [] as AccessRecord[] };
    await using world = await openSmall(told, 16 * MIB);
    const answer = Buffer.alloc(MIB);
    world.tlsA.handle = (socket) => void socket.end(answer);
    const clients = await Promise.all(Array.from({ length: CROWD }, () => begin(world, '127.0.1.1')));
    await until(async () => {
      const { outcomes, figures } = await countsOf(world);
      return outcomes.stalled > 0 && figures.stalledBytes <= 16 * MIB;
    });
    for (const client of clients) client.destroy();
  });

  test('a download whose client has ended its sending, too, counts until it is taken', async () => {
    const told = { refusals: [] as Refusal[], records: [] as AccessRecord[] };
    await using world = await openSmall(told, 16 * MIB);
    const answer = Buffer.alloc(MIB);
    world.tlsA.handle = (socket) => void socket.resume().end(answer);
    const clients = await Promise.all(Array.from({ length: CROWD }, () => begin(world, '127.0.1.1')));
    for (const client of clients) client.end();
    await until(async () => {
      const { outcomes, figures } = await countsOf(world);
      return outcomes.stalled > 0 && figures.stalledBytes <= 16 * MIB;
    });
    for (const client of clients) client.destroy();
    await until(async () => (await countsOf(world)).figures.open === 0);
  });
});
