import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createClientOf, createHttpServer, createLogger, type HttpServer, listen } from '@skerry/kit';
import type { RuntimeName } from '@skerry/protocol';
import { addProgramRoutes } from '../../services/compute/src/programs/routes.ts';
import { FrameReader, renderFrame } from '../../services/compute/src/programs/sandbox/frames.ts';
import { findRuntimes, type RuntimeKit } from '../../services/compute/src/programs/sandbox/runtimes.ts';
import { wasmCommand } from '../../services/compute/src/programs/testing/attacks.ts';
import { TestPrograms } from '../../services/compute/src/programs/testing/setup.ts';

const COLD_ROUNDS = 15;
const WARM_ROUNDS = 10;
const WARM_CALLS = 50;
const MEMORY_CALLS = 1_000;
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

const sorted = (values: readonly number[]) => values.toSorted((x, y) => x - y);
const at = (values: readonly number[], part: number) =>
  sorted(values)[Math.floor((values.length - 1) * part)]!;
const figures = (values: readonly number[]) =>
  `${at(values, 0.5).toFixed(2).padStart(8)} ${at(values, 0.9).toFixed(2).padStart(8)}`;

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

async function benchMemory(room: Room, hashes: readonly string[]): Promise<string[]> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const lines: string[] = [];
  for (let thousand = 0; thousand <= 3; thousand++) {
    if (thousand > 0) for (let n = 0; n < MEMORY_CALLS; n++) await room.call(hashes[n % hashes.length]!);
    collect();
    const { rss, heapUsed } = process.memoryUsage();
    lines.push(
      `after ${String(thousand * MEMORY_CALLS).padStart(5)} calls: ${(rss / 2 ** 20).toFixed(1)} MiB resident, ${(heapUsed / 2 ** 20).toFixed(2)} MiB of heap`,
    );
  }
  return lines;
}

/** Calls of programs over HTTP to a compute node, against the same runtime as a bare process, in turn. */
export async function benchPrograms(): Promise<void> {
  const kits = findRuntimes();
  const cold = await Room.open(0);
  const spare = await Room.open(1);
  console.log('Programs: milliseconds, median and 90th of a hundred');
  console.log(`${''.padEnd(52)}${'median'.padStart(9)}${'p90'.padStart(9)}${'over bare'.padStart(12)}`);
  const print = (name: string, values: readonly number[], bare: readonly number[]) => {
    const over = `${(at(values, 0.5) - at(bare, 0.5)).toFixed(2)} ms`;
    console.log(`${name.padEnd(52)} ${figures(values)}${(values === bare ? '' : over).padStart(12)}`);
  };
  for (const kit of kits.values()) {
    const first = await benchCold(kit, cold, spare);
    print(`${kit.runtime}: bare process, start to first answer`, first.bare, first.bare);
    print('  cold call, nothing started ahead', first.ours, first.bare);
    print('  first call, a blank sandbox waits', first.first, first.bare);
    const warm = await benchWarm(kit, cold);
    print(`${kit.runtime}: bare process, next answer`, warm.bare, warm.bare);
    print('  warm call', warm.ours, warm.bare);
    print('  warm call of a program that stood still', warm.frozen, warm.bare);
  }
  const hashes = [...kits.keys()].map((runtime) => cold.programs.add(runtime, CODE[runtime](0)));
  console.log('\nMemory of the process that serves them:');
  for (const line of await benchMemory(cold, hashes)) console.log(line);
  await cold.close();
  await spare.close();
}
