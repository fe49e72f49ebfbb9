import assert from 'node:assert/strict';
import { connect as connectHttp2 } from 'node:http2';
import type { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { describe, test } from 'node:test';
import { helloWire } from '../tls/testing/hello.ts';
import { NativeDataPlane } from './native/plane.ts';
import { builtForTests } from './native/testing/built.ts';
import type { AccessRecord, DataPlane, DataPlaneOptions, Refusal } from './port.ts';
import { serveHttp2 } from './testing/suite/http2-client.ts';
import {
  END_HEADERS,
  END_STREAM,
  HEADERS,
  PREFACE,
  WIDE_WINDOWS,
  writeFields,
  writeFrame,
} from './testing/suite/http2-wire.ts';
import { pour } from './testing/suite/unread.ts';
import {
  NAME_A,
  openClient,
  openWorld,
  readAll,
  readBytes,
  until,
  type World,
} from './testing/suite/world.ts';
import { TsDataPlane } from './ts/plane.ts';

const path = await builtForTests();
const HELLO = helloWire({ serverName: NAME_A });
const MIB = 2 ** 20;
const MAX_STALLED_BYTES = 64 * MIB;
const ZEROS = Buffer.alloc(65_536);
/** With those who read. */
const MAX_SLOW_BYTES = 2 * MAX_STALLED_BYTES;
const CROWD = 60;
const SLOW_READ_MS = 300;

interface Told {
  readonly refusals: Refusal[];
  readonly records: AccessRecord[];
}
const newTold = (): Told => ({ refusals: [], records: [] });

type Create = (options: DataPlaneOptions) => DataPlane;
const createNative: Create = (options) =>
  new NativeDataPlane({ ...options, path, onTrouble: (_, said) => assert.fail(said) });
const createTs: Create = (options) => new TsDataPlane(options);

async function openSmall(
  told: Told,
  maxStalledBytes = MAX_STALLED_BYTES,
  create = createNative,
): Promise<World> {
  return await openWorld(
    (options) =>
      create({
        ...options,
        onRefused: (refusal) => told.refusals.push(refusal),
        access: { every: 1, tell: (record) => told.records.push(record) },
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

/** The same of plain HTTP. */
async function ask({ ports }: World, from: string): Promise<Socket> {
  const client = await openClient(ports.http, '127.0.0.1', from);
  client.write(`GET / HTTP/1.1\r\nHost: ${NAME_A}\r\n\r\n`);
  return client;
}

/** The same of HTTP/2. */
async function askHttp2({ ports }: World, from: string): Promise<Socket> {
  const client = await openClient(ports.http, '127.0.0.1', from);
  const fields = { ':method': 'GET', ':scheme': 'http', ':authority': NAME_A, ':path': '/' };
  const flags = END_HEADERS | END_STREAM;
  const request = writeFrame({ type: HEADERS, flags, stream: 1, payload: writeFields(fields) });
  client.write(Buffer.concat([PREFACE, WIDE_WINDOWS, request]));
  return client;
}

const countsOf = async ({ plane }: World) => (await plane.stats()).tls;

interface Held {
  readonly open: number;
  readonly stalled: number;
  readonly stalledBytes: number;
}

async function heldInTls(world: World): Promise<Held> {
  const { outcomes, figures } = await countsOf(world);
  return { open: figures.open, stalled: outcomes.stalled, stalledBytes: figures.stalledBytes };
}

async function heldInHttp({ plane }: World): Promise<Held> {
  const { httpOpen, httpRefusals, httpStalledBytes } = await plane.stats();
  return { open: httpOpen, stalled: httpRefusals.stalled, stalledBytes: httpStalledBytes };
}

const serveTls = (world: World, send: (sink: Writable) => void) => {
  world.tlsA.handle = (socket) => send(socket.resume());
};
const HEAD = 'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n';
const serveHttp = (world: World, send: (sink: Writable) => void) => {
  world.httpA.handle = (socket) => {
    socket.resume().write(HEAD);
    send(socket);
  };
};
const serveStreams = ({ httpA }: World, send: (sink: Writable) => void) => serveHttp2(httpA, send);

const SUBJECTS = [
  { name: 'the native plane', create: createNative, client: begin, held: heldInTls, serve: serveTls },
  { name: 'the TypeScript plane', create: createTs, client: begin, held: heldInTls, serve: serveTls },
  { name: 'plain HTTP', create: createTs, client: ask, held: heldInHttp, serve: serveHttp },
  { name: 'HTTP/2', create: createTs, client: askHttp2, held: heldInHttp, serve: serveStreams },
] as const;

describe('clients that take nothing of what comes for them', () => {
  for (const { name, create, client: open, held, serve } of SUBJECTS)
    test(`${name}: the network that holds most loses its connections; who reads goes on, and so does another that holds little`, async () => {
      const told = newTold();
      await using world = await openSmall(told, MAX_STALLED_BYTES, create);
      serve(world, pour);
      const alone = await open(world, '127.0.2.1');
      const reader = await open(world, '127.0.3.1');
      const crowd = await Promise.all(Array.from({ length: CROWD }, () => open(world, '127.0.1.1')));
      await until(async () => {
        await readBytes(reader, ZEROS.length);
        const { stalled, stalledBytes } = await held(world);
        return stalled > 0 && stalledBytes <= MAX_SLOW_BYTES;
      });
      // No more: who reads much is offered much, and would hold more than the crowd.
      for (const client of [reader, alone]) await readBytes(client, MIB);
      await until(async () => {
        const { open: left, stalled } = await held(world);
        return left + stalled === CROWD + 2;
      });
      await until(() => told.refusals.some(({ reason }) => reason === 'stalled'));
      assert.deepEqual([...new Set(told.refusals.map(({ network }) => network))], ['127.0.1.0/24']);
      const ended = told.records.filter(({ outcome }) => outcome === 'stalled');
      assert.ok(held === heldInHttp || ended.length > 0);
      assert.ok(ended.every(({ clientAddress }) => clientAddress === '127.0.1.1'));
      for (const client of [reader, alone, ...crowd]) client.destroy();
      await until(async () => (await held(world)).open === 0);
      assert.equal((await held(world)).stalledBytes, 0, 'what is given back is not counted');
    });

  test('who has read for a while keeps its connection where a crowd of newcomers behind its address takes nothing', async () => {
    const told = newTold();
    await using world = await openSmall(told, 32 * MIB);
    world.tlsA.handle = pour;
    // One: on a busy machine its sockets alone grow to 25 MiB and more, and several would hold more than all may.
    const reader = await begin(world, '127.0.1.1');
    await readBytes(reader, 4 * MIB);
    const crowd = await Promise.all(Array.from({ length: CROWD }, () => begin(world, '127.0.1.1')));
    let readAt = 0;
    await until(async () => {
      // Slowly: less in eight seconds than waits for it, and much more than a stalled one takes.
      if (performance.now() - readAt > SLOW_READ_MS) {
        readAt = performance.now();
        await readBytes(reader, ZEROS.length);
      }
      return (await countsOf(world)).outcomes.stalled > 0;
    });
    await readBytes(reader, MIB);
    for (const client of [reader, ...crowd]) client.destroy();
  });

  test('what clients send to an instance that reads nothing counts as theirs, too', async () => {
    const told = newTold();
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
    const told = newTold();
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

  for (const { name, create, client: open, held, serve } of SUBJECTS)
    test(`${name}: little of each counts where many have it`, async () => {
      await using world = await openSmall(newTold(), 16 * MIB, create);
      // Client and kernel there take some 200 KiB of it.
      const little = Buffer.alloc(320 * 1024);
      serve(world, (socket) => void socket.write(little));
      const clients = await Promise.all(Array.from({ length: 3 * CROWD }, () => open(world, '127.0.1.1')));
      await until(async () => {
        const { stalled, stalledBytes } = await held(world);
        return stalled > 0 && stalledBytes <= 16 * MIB;
      });
      for (const client of clients) client.destroy();
    });

  for (const { name, create, client: open, held, serve } of SUBJECTS)
    test(`${name}: a download that its instance ended counts until it is taken`, async () => {
      const told = newTold();
      await using world = await openSmall(told, 16 * MIB, create);
      const answer = Buffer.alloc(MIB);
      serve(world, (sink) => void sink.end(answer));
      const clients = await Promise.all(Array.from({ length: CROWD }, () => open(world, '127.0.1.1')));
      await until(async () => {
        const { stalled, stalledBytes } = await held(world);
        return stalled > 0 && stalledBytes <= 16 * MIB;
      });
      for (const client of clients) client.destroy();
    });

  test('a download whose client has ended its sending, too, counts until it is taken', async () => {
    const told = newTold();
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

  for (const { name, create } of SUBJECTS.filter(({ held }) => held === heldInTls))
    test(`${name}: where TCP has much, an answer comes whole to who had ended its sending before`, async () => {
      await using world = await openSmall(newTold(), MAX_STALLED_BYTES, create);
      serveTls(world, pour);
      const crowd = await Promise.all(Array.from({ length: CROWD }, () => begin(world, '127.0.1.1')));
      await until(async () => (await countsOf(world)).figures.stalledBytes > MAX_STALLED_BYTES / 2);
      const answer = Buffer.alloc(4 * MIB);
      const answered = new Promise<void>((resolve) => {
        world.tlsA.handle = (socket) =>
          void socket.resume().once('end', () => socket.end(answer, () => resolve()));
      });
      const alone = await begin(world, '127.0.2.1');
      alone.end();
      const all = await Promise.all([readAll(alone), answered]);
      assert.equal(all[0].length, answer.length);
      for (const client of crowd) client.destroy();
    });

  test('HTTP/2: what clients send to an instance that allows everything and reads nothing counts as theirs', async () => {
    await using world = await openSmall(newTold(), MAX_STALLED_BYTES, createTs);
    world.httpA.handle = (socket) => void socket.pause().write(WIDE_WINDOWS);
    const sessions = Array.from({ length: CROWD }, () =>
      connectHttp2(`http://127.0.0.1:${world.ports.http}`),
    );
    for (const session of sessions) {
      const stream = session.on('error', () => {}).request({ ':authority': NAME_A, ':method': 'POST' });
      pour(stream.on('error', () => {}));
    }
    await until(async () => {
      const { stalled, stalledBytes } = await heldInHttp(world);
      return stalled > 0 && stalledBytes <= MAX_STALLED_BYTES;
    });
    for (const session of sessions) session.destroy();
  });

  for (const [name, open, held] of [
    ['TLS', begin, heldInTls],
    ['plain HTTP', ask, heldInHttp],
  ] as const)
    test(`${name}: a fault that ends one connection’s turn is told of, and ends neither the process nor the rule`, async () => {
      const troubles: string[] = [];
      await using world = await openWorld(
        (options) =>
          new TsDataPlane({
            ...options,
            onTrouble: (_details, said) => troubles.push(said),
            onRefused: () => {
              if (troubles.length === 0) throw new Error('a fault');
            },
          }),
        { maxStalledBytes: 16 * MIB },
      );
      (held === heldInTls ? serveTls : serveHttp)(world, pour);
      const crowd = await Promise.all(Array.from({ length: CROWD }, () => open(world, '127.0.1.1')));
      await until(async () => {
        const { stalled, stalledBytes } = await held(world);
        return stalled > 1 && stalledBytes <= 16 * MIB;
      });
      assert.equal(troubles.length, 1);
      for (const client of crowd) client.destroy();
    });
});
