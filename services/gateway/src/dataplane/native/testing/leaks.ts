import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { helloWire } from '../../../tls/testing/hello.ts';
import type { DataPlaneOptions } from '../../port.ts';
import {
  NAME_A,
  NAME_B,
  NAME_DEAD,
  openClient,
  openWorld,
  ROUTES,
  readBytes,
  until,
  type World,
} from '../../testing/suite/world.ts';
import { NativeDataPlane } from '../plane.ts';
import { buildCrowd, Crowd, type CrowdKind } from './crowd.ts';

/** How many clients of each kind come. */
export interface LeakCounts {
  readonly silent: number;
  /** They die in the middle of their hello. */
  readonly dying: number;
  /** To an instance that accepts and never reads. */
  readonly unread: number;
  /** To an instance that is down. */
  readonly refused: number;
}

/** Of native/relay.c: empty pipes that are kept for the next transfers. */
const MAX_SPARE_PIPES = 64;
/** Only what hangs takes as long. */
const SETTLE_MS = 600_000;
/** Of a process, beside one for each client. */
const OTHER_DESCRIPTORS = 2500;
/** The allocator may keep some of what was given back, for the next. */
const MAX_KEPT_BYTES = 4 * 1024 * 1024;

interface Footprint {
  readonly descriptors: number;
  readonly connectionBytes: number;
  readonly residentBytes: number;
}

function footprintOf(planes: readonly NativeDataPlane[]): Footprint {
  const sum = { descriptors: 0, connectionBytes: 0, residentBytes: 0 };
  for (const plane of planes) {
    const rollup = readFileSync(`/proc/${plane.pid}/smaps_rollup`, 'utf8');
    sum.descriptors += readdirSync(`/proc/${plane.pid}/fd`).length;
    sum.connectionBytes += plane.connectionBytes;
    sum.residentBytes += Number(/^Rss:\s+(\d+)/m.exec(rollup)?.[1]) * 1024;
  }
  return sum;
}

const textOf = ({ descriptors, connectionBytes, residentBytes }: Footprint) =>
  `${descriptors} descriptors, ${connectionBytes} bytes for connections, ${Math.round(residentBytes / 1024)} KiB resident`;

/** A client that does nothing wrong all the while, and how long it waits for its answers. */
class Neighbour {
  readonly #socket: Socket;
  readonly #done: Promise<void>;
  #stopped = false;
  exchanges = 0;
  longestMs = 0;

  private constructor(socket: Socket) {
    this.#socket = socket;
    this.#done = this.#talk();
    // Whoever stops it learns of it.
    this.#done.catch(() => {});
  }

  static async open(port: number): Promise<Neighbour> {
    const socket = await openClient(port);
    const hello = helloWire({ serverName: NAME_A });
    socket.write(hello);
    await readBytes(socket, hello.length);
    return new Neighbour(socket);
  }

  async #talk(): Promise<void> {
    while (!this.#stopped) {
      const startMs = performance.now();
      this.#socket.write('ping');
      await readBytes(this.#socket, 4);
      this.exchanges++;
      this.longestMs = Math.max(this.longestMs, performance.now() - startMs);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#done;
    assert.ok(!this.#socket.destroyed && !this.#socket.readableEnded);
    this.#socket.destroy();
  }
}

/** Processes that share one port: one alone may not have as many descriptors as all need together. */
class Planes implements AsyncDisposable {
  readonly #world: World;
  readonly all: readonly NativeDataPlane[];

  private constructor(world: World, all: readonly NativeDataPlane[]) {
    this.#world = world;
    this.all = all;
  }

  static async open(path: string, processes: number, most: number): Promise<Planes> {
    const all: NativeDataPlane[] = [];
    let shared: DataPlaneOptions | undefined;
    const create = (options: DataPlaneOptions) => {
      const plane = new NativeDataPlane({
        ...options,
        path,
        onTrouble: (_, message) => assert.fail(message),
      });
      all.push(plane);
      return plane;
    };
    const limits = { maxConnections: most, maxUndecided: most, helloTimeoutMs: SETTLE_MS };
    const world = await openWorld((options) => {
      shared = { ...options, sharePort: true };
      return create(shared);
    }, limits);
    const { http: httpPort, https: httpsPort } = world.ports;
    while (all.length < processes) {
      const plane = create({ ...shared!, httpPort, httpsPort });
      plane.replaceTable(ROUTES);
      await plane.listen();
    }
    world.tlsA.handle = (socket) => void socket.pipe(socket);
    world.tlsB.handle = (socket) => void socket.pause();
    return new Planes(world, all);
  }

  get port(): number {
    return this.#world.ports.https;
  }

  get open(): number {
    return this.all.reduce((sum, plane) => sum + plane.stats().tls.figures.open, 0);
  }

  get failed(): number {
    return this.all.reduce((sum, plane) => sum + plane.stats().tls.outcomes.connect_failed, 0);
  }

  get bytes(): number {
    return this.all.reduce((sum, plane) => sum + plane.connectionBytes, 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const plane of this.all.slice(1)) await plane.close();
    await this.#world[Symbol.asyncDispose]();
  }
}

/** So many descriptors one process may have (`ulimit -n`). */
const descriptorLimit = () =>
  Number(/^Max open files\s+\d+\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]);

/** Crowds that behave badly, one kind after another; after each, everything is as it was before. */
export async function checkLeaks(
  path: string,
  counts: LeakCounts,
  say: (line: string) => void,
): Promise<void> {
  const crowdPath = await buildCrowd();
  const perProcess = descriptorLimit() - OTHER_DESCRIPTORS;
  const processes = Math.ceil(Math.max(...Object.values(counts)) / perProcess);
  await using planes = await Planes.open(path, processes, perProcess);
  const neighbour = await Neighbour.open(planes.port);
  const start = footprintOf(planes.all);
  say(`before, ${processes} process(es) on one port: ${textOf(start)}`);

  const run = async (kind: CrowdKind, name: string, count: number, what: string) => {
    const failedBefore = planes.failed;
    const hello = helloWire({ serverName: name });
    const crowds = Array.from({ length: processes }, (_, index) => {
      const share = Math.floor(((index + 1) * count) / processes) - Math.floor((index * count) / processes);
      return new Crowd(crowdPath, planes.port, share, kind, hello);
    });
    const came = await Promise.all(crowds.map((crowd) => crowd.come()));
    assert.equal(
      came.reduce((sum, one) => sum + one),
      count,
    );
    await until(
      () => (kind === 'whole' ? planes.failed - failedBefore === count : planes.open === count + 1),
      SETTLE_MS,
    );
    const most = footprintOf(planes.all);
    await Promise.all(crowds.map((crowd) => crowd.go()));
    await until(() => planes.open === 1 && planes.bytes === start.connectionBytes, SETTLE_MS);
    const end = footprintOf(planes.all);
    say(`${count} ${what}: ${textOf(most)}; after: ${textOf(end)}`);
    assert.ok(end.descriptors <= start.descriptors + 2 * MAX_SPARE_PIPES * processes);
    assert.ok(end.residentBytes <= start.residentBytes + MAX_KEPT_BYTES * processes);
  };
  await run('silent', NAME_A, counts.silent, 'that never speak');
  await run('part', NAME_A, counts.dying, 'that die in the middle of their hello');
  await run('flood', NAME_B, counts.unread, 'to an instance that never reads');
  await run('whole', NAME_DEAD, counts.refused, 'to an instance that is down');
  await neighbour.stop();
  say(
    `${neighbour.exchanges} exchanges of a neighbour meanwhile, the longest ${Math.round(neighbour.longestMs)} ms`,
  );
}
