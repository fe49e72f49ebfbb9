import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { createClientOf, createHttpServer, createLogger, type HttpServer, listen } from '@skerry/kit';
import type { RuntimeName } from '@skerry/protocol';
import { addProgramRoutes } from '../../services/compute/src/programs/routes.ts';
import { FrameReader, renderFrame } from '../../services/compute/src/programs/sandbox/frames.ts';
import { findRuntimes, type RuntimeKit } from '../../services/compute/src/programs/sandbox/runtimes.ts';
import { wasmCommand } from '../../services/compute/src/programs/testing/attacks.ts';
import { TestPrograms } from '../../services/compute/src/programs/testing/setup.ts';
import { type Figures, median } from '../measure/figures.ts';
import { collectGarbage } from '../measure/garbage.ts';

const COLD_ROUNDS = 15;
const WARM_ROUNDS = 10;
const WARM_CALLS = 50;
const MEMORY_CALLS = 1_000;
/** What the sandbox may add to the runtime. */
const COLD_GOAL_MS = 300;
const WARM_GOAL_MS = 5;
const BODY = Buffer.from('{"variables":{"a":2,"b":3}}');
const CALL = {
  kind: 'call',
  method: 'POST',
  path: '/',
  query: '',
  headers: {},
  variables: { a: 2, b: 3 },
  isRun: true,
};
const CODE: Readonly<Record<RuntimeName, (n: number) => string | Buffer>> = {
  nodejs: (n) => `function main({ a, b }) { return a + b; } // ${n}`,
  python3: (n) => `def main(v):\n  return v["a"] + v["b"] # ${n}`,
  // A custom section makes each one another program.
  wasm: (n) => Buffer.concat([wasmCommand(), Buffer.from([0, 3, 1, 0x6e, n & 0x7f])]),
};

/** The same runtime with the same program, as a plain process: no sandbox, no pool, no HTTP. */
class BareRuntime {
  readonly #child: ChildProcess;
  readonly #channel: Duplex;
  readonly #reader = new FrameReader();
  #next = Promise.withResolvers<void>();

  constructor({ argv, mounts }: RuntimeKit) {
    const outside = argv.map((part) => {
      const mount = mounts.find(({ to }) => part === to || part.startsWith(`${to}/`));
      return mount ? mount.from + part.slice(mount.to.length) : part;
    });
    this.#child = spawn(outside[0]!, outside.slice(1), { stdio: ['ignore', 'ignore', 'ignore', 'pipe'] });
    this.#channel = this.#child.stdio[3] as Duplex;
    this.#channel.on('data', (chunk: Buffer) => {
      for (const _frame of this.#reader.push(chunk)) this.#next.resolve();
    });
  }

  async #answer(): Promise<void> {
    await this.#next.promise;
    this.#next = Promise.withResolvers<void>();
  }

  async start(code: string | Buffer): Promise<void> {
    await this.#answer();
    const head = { kind: 'load', encoding: 'plain', entrypoint: null, environment: {} };
    this.#channel.write(renderFrame(head, Buffer.from(code as string)));
  }

  async call(): Promise<void> {
    this.#channel.write(renderFrame(CALL, BODY));
    await this.#answer();
  }

  async end(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}

/** A room of programs behind HTTP, as a compute node has it. */
class Room {
  readonly programs: TestPrograms;
  readonly #app: HttpServer;
  readonly #url: URL;
  readonly #agent = new Agent({ keepAlive: true });

  private constructor(programs: TestPrograms, app: HttpServer, url: string) {
    this.programs = programs;
    this.#app = app;
    this.#url = new URL(url);
  }

  static async open(spares: number): Promise<Room> {
    const programs = await TestPrograms.open({ spares, memoryMib: 8_192 });
    const app = await createHttpServer({ log: createLogger('bench', 'error') });
    const clientOf = createClientOf({ trustedProxies: [], exempt: [] });
    addProgramRoutes(app, programs.programs, clientOf, []);
    return new Room(programs, app, await listen(app, '127.0.0.1', 0));
  }

  async call(hash: string): Promise<void> {
    const sent = request({
      host: this.#url.hostname,
      port: this.#url.port,
      method: 'POST',
      path: `/run/${hash}`,
      agent: this.#agent,
      headers: { 'content-type': 'application/json', 'content-length': BODY.length },
    });
    sent.end(BODY);
    const [answer] = await once(sent, 'response');
    answer.resume();
    await once(answer, 'end');
    if (answer.statusCode !== 200) throw new Error(`a program answered ${answer.statusCode}`);
  }

  async close(): Promise<void> {
    this.#agent.destroy();
    await this.#app.close();
    await this.programs[Symbol.asyncDispose]();
  }
}

async function timed(work: () => Promise<void>): Promise<number> {
  const startMs = performance.now();
  await work();
  return performance.now() - startMs;
}

const SETTLE_MS = 300;

async function benchCold(kit: RuntimeKit, cold: Room, spare: Room) {
  const [bare, ours, first]: number[][] = [[], [], []];
  for (let round = 0; round < COLD_ROUNDS; round++) {
    const code = CODE[kit.runtime](round);
    await delay(SETTLE_MS);
    let process: BareRuntime | undefined;
    bare!.push(
      await timed(async () => {
        process = new BareRuntime(kit);
        await process.start(code);
        await process.call();
      }),
    );
    await process?.end();
    const options = { memoryMib: 64 };
    const coldHash = cold.programs.add(kit.runtime, code, options);
    ours!.push(await timed(() => cold.call(coldHash)));
    const spareHash = spare.programs.add(kit.runtime, code, options);
    while (spare.programs.programs.spares < spare.programs.programs.runtimes.length) await delay(10);
    await delay(SETTLE_MS);
    first!.push(await timed(() => spare.call(spareHash)));
  }
  return { bare: bare!, ours: ours!, first: first! };
}

async function benchWarm(kit: RuntimeKit, room: Room) {
  const code = CODE[kit.runtime](0);
  const bareRuntime = new BareRuntime(kit);
  await bareRuntime.start(code);
  await bareRuntime.call();
  const hash = room.programs.add(kit.runtime, code);
  await room.call(hash);
  const [bare, ours, frozen]: number[][] = [[], [], []];
  for (let round = 0; round < WARM_ROUNDS; round++) {
    for (let n = 0; n < WARM_CALLS; n++) bare!.push(await timed(() => bareRuntime.call()));
    for (let n = 0; n < WARM_CALLS; n++) ours!.push(await timed(() => room.call(hash)));
    await delay(SETTLE_MS);
    frozen!.push(await timed(() => room.call(hash)));
  }
  await bareRuntime.end();
  return { bare: bare!, ours: ours!, frozen: frozen! };
}

async function benchMemory(figures: Figures, room: Room, hashes: readonly string[]): Promise<void> {
  figures.group('memory of the process that serves programs, collected');
  for (let thousand = 0; thousand <= 3; thousand++) {
    if (thousand > 0) for (let n = 0; n < MEMORY_CALLS; n++) await room.call(hashes[n % hashes.length]!);
    collectGarbage();
    const { rss, heapUsed } = process.memoryUsage();
    const calls = `after ${(thousand * MEMORY_CALLS).toLocaleString('en')} calls`;
    figures.add(`${calls}, resident`, 'MiB', rss / 2 ** 20);
    figures.add(`${calls}, heap`, 'MiB', heapUsed / 2 ** 20);
  }
}

/** Times of one kind of call, and how much more they are than the bare runtime's at the median. */
function takeCalls(
  figures: Figures,
  name: string,
  {
    values,
    bare,
    mostMoreMs,
  }: { readonly values: number[]; readonly bare: number[]; readonly mostMoreMs: number },
): void {
  figures.addTimes(name, values);
  figures.add(`${name}, more than bare`, 'ms', median(values) - median(bare), {
    goal: { of: 'median', most: mostMoreMs },
  });
}

/** Calls of programs over HTTP to a compute node, against the same runtime as a bare process, in turn. */
export async function benchPrograms(figures: Figures): Promise<void> {
  const kits = findRuntimes();
  const cold = await Room.open(0);
  const spare = await Room.open(1);
  for (const kit of kits.values()) {
    figures.group(`programs of ${kit.runtime}`);
    const first = await benchCold(kit, cold, spare);
    figures.addTimes('bare process, start to first answer', first.bare);
    const most = { bare: first.bare, mostMoreMs: COLD_GOAL_MS };
    takeCalls(figures, 'cold call, nothing started ahead', { values: first.ours, ...most });
    takeCalls(figures, 'first call in a spare sandbox', { values: first.first, ...most });
    const warm = await benchWarm(kit, cold);
    figures.addTimes('bare process, next answer', warm.bare);
    const little = { bare: warm.bare, mostMoreMs: WARM_GOAL_MS };
    takeCalls(figures, 'warm call', { values: warm.ours, ...little });
    takeCalls(figures, 'warm call of a frozen program', { values: warm.frozen, ...little });
  }
  const hashes = [...kits.keys()].map((runtime) => cold.programs.add(runtime, CODE[runtime](0)));
  await benchMemory(figures, cold, hashes);
  await cold.close();
  await spare.close();
}
