import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Goal } from './measure/figure.ts';
import { type Figures, tell } from './measure/figures.ts';
import { listProcessesBelow, readProcessorSeconds } from './measure/processor-time.ts';

const COMMAND = resolve(import.meta.dirname, '../apps/cli/bin/skerry.js');
const BUNDLE = resolve(import.meta.dirname, '../tools/bundle.js');
const COMMAND_ROUNDS = 7;
/** Runs that are measured together: the system counts processor time in hundredths of a second. */
const RUNS = 5;
const CORE_ROUNDS = 5;
const DEVNET_ROUNDS = 3;
/** A devnet that has done what follows its start. */
const IDLE_MS = 40_000;
const READY_MS = 300_000;
const MIB = 1024;

const LIST = ['instance', 'list', '--all', '--core'] as const;
/** Commands that a person waits for. The last two ask a core node: one that is not there, and one that has no instances. */
const commandsOf = (coreUrl: string): Readonly<Record<string, readonly string[]>> => ({
  'skerry --help': ['--help'],
  'skerry key list': ['key', 'list'],
  'skerry instance list': [...LIST, 'http://127.0.0.1:9'],
  'skerry instance list, answered': [...LIST, coreUrl],
});
const NO_INSTANCES = {
  instances: [],
  pagination: { total: 0, page: 1, per_page: 100, total_pages: 1 },
  cursor: '0',
  next_cursor: null,
};
/** Answers each request so, in a process of its own: the bench waits for its runs without an event loop. */
const ANSWERING = `require('node:http').createServer((_, answer) => answer.end(${JSON.stringify(JSON.stringify(NO_INSTANCES))}))
  .listen(0, '127.0.0.1', function () { process.send(this.address().port) })`;
const COMMAND_GOAL: Goal = { of: 'ratio', most: 6 };
const SERVING_GOAL: Goal = { of: 'median', most: 5 };
const MEMORY_GOAL: Goal = { of: 'median', most: 600 };

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const environmentOf = (home: string) => ({ PATH, HOME: home, SKERRY_HOME: home });

/** Milliseconds of processor time that one run of Node takes. */
function measureRun(args: readonly string[], home: string): number {
  const secondsOfChildren = () => {
    const { user, system } = process.cpuUsage();
    return readProcessorSeconds([process.pid]) - (user + system) / 1e6;
  };
  const before = secondsOfChildren();
  for (let run = 0; run < RUNS; run++)
    spawnSync(process.execPath, args, { env: environmentOf(home), stdio: 'ignore' });
  return ((secondsOfChildren() - before) * 1000) / RUNS;
}

async function benchCommands(figures: Figures, home: string): Promise<void> {
  const core = spawn(process.execPath, ['-e', ANSWERING], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  try {
    const [port] = (await once(core, 'message')) as [number];
    measureCommands(figures, home, Object.entries(commandsOf(`http://127.0.0.1:${port}`)));
  } finally {
    await end(core);
  }
}

function measureCommands(
  figures: Figures,
  home: string,
  commands: readonly [name: string, args: readonly string[]][],
): void {
  const bares: number[] = [];
  const own = commands.map((): number[] => []);
  for (let round = 0; round <= COMMAND_ROUNDS; round++) {
    const bare = measureRun(['-e', '0'], home);
    const costs = commands.map(([, args]) => measureRun([COMMAND, ...args], home));
    // The first round fills the compile cache.
    if (round === 0) continue;
    bares.push(bare);
    costs.forEach((cost, index) => {
      own[index]!.push(cost);
    });
  }
  figures.group('CPU time of a command');
  const bareName = 'node -e 0';
  figures.add(bareName, 'ms', bares);
  commands.forEach(([name], index) => {
    const values = own[index]!.map((cost, round) => cost / bares[round]!);
    figures.add(name, 'ms', own[index]!, { ratio: { to: bareName, values }, goal: COMMAND_GOAL });
  });
}

async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}

/** Starts something and resolves when it says that it serves, with seconds that passed and seconds of all processors. */
async function start(
  home: string,
  args: readonly string[],
  isReady: (child: ChildProcess) => Promise<unknown>,
) {
  const startMs = performance.now();
  const child = spawn(process.execPath, [COMMAND, ...args], {
    env: { ...environmentOf(home), SKERRY_CORE_PORT: '0' },
    stdio: ['ignore', 'pipe', 'ignore', 'ipc'],
  });
  const over = once(child, 'exit').then(() => Promise.reject(new Error(`${args.join(' ')} ended`)));
  const late = delay(READY_MS, undefined, { ref: false }).then(() =>
    Promise.reject(new Error('not in time')),
  );
  over.catch(() => {});
  late.catch(() => {});
  await Promise.race([isReady(child), over, late]);
  return { child, seconds: (performance.now() - startMs) / 1000, cpu: readProcessorSeconds([child.pid!]) };
}

async function benchCore(figures: Figures, home: string): Promise<void> {
  const seconds: number[] = [];
  const cpu: number[] = [];
  for (let round = 0; round <= CORE_ROUNDS; round++) {
    const run = await start(home, ['core'], (child) => once(child, 'message'));
    await end(run.child);
    // The first round makes the database.
    if (round === 0) continue;
    seconds.push(run.seconds);
    cpu.push(run.cpu);
  }
  figures.group('a core node with its embedded database, until it serves');
  figures.add('time', 's', seconds);
  figures.add('CPU time of all its processes', 's', cpu);
}

/** Memory of processes, what they share counted in parts (proc_pid_smaps(5)), in MiB. */
async function readPss(pids: readonly number[]): Promise<number> {
  const texts = await Promise.all(
    pids.map((pid) => readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '')),
  );
  return texts.reduce((sum, text) => sum + Number(/^Pss:\s+(\d+)/m.exec(text)?.[1] ?? 0), 0) / MIB;
}

const PORTS = ['core', 'scheduler', 'compute', 'credit', 'http', 'https', 'gateway', 'status'];

async function benchDevnet(figures: Figures, home: string): Promise<void> {
  const up = ['up', '--json', '--quiet', ...PORTS.flatMap((name) => [`--${name}-port`, '0'])];
  const seconds: number[] = [];
  const cpu: number[] = [];
  const pss: number[] = [];
  for (let round = 0; round <= DEVNET_ROUNDS; round++) {
    const run = await start(home, up, (child) => once(child.stdout!, 'data'));
    tell(`devnet, round ${round} of ${DEVNET_ROUNDS}: ${run.seconds.toFixed(1)} s`);
    // The first round makes keys and the database.
    if (round > 0) {
      seconds.push(run.seconds);
      cpu.push(run.cpu);
      await delay(IDLE_MS);
      pss.push(await readPss(listProcessesBelow([run.child.pid!])));
    }
    await end(run.child);
  }
  figures.group('a devnet');
  figures.add('until it serves', 's', seconds, { goal: SERVING_GOAL });
  figures.add('until it serves, CPU time of all processes', 's', cpu);
  figures.add(`memory (PSS) ${IDLE_MS / 1000} s later`, 'MiB', pss, { goal: MEMORY_GOAL });
}

const PARTS = { commands: benchCommands, core: benchCore, devnet: benchDevnet };

/** What commands and daemons cost to start; `commands`, `core` or `devnet` for one part. */
export async function benchStart(figures: Figures, [wanted]: readonly string[]): Promise<void> {
  const parts = Object.entries(PARTS).filter(([name]) => wanted === undefined || name === wanted);
  if (parts.length === 0)
    throw new Error(`start has no part "${wanted}": its parts are ${Object.keys(PARTS).join(', ')}`);
  const home = await mkdtemp(join(tmpdir(), 'skerry-bench-start-'));
  // As "npm ci" leaves a checkout: code that was changed since would be measured without its bundle.
  spawnSync(process.execPath, [BUNDLE], { stdio: ['ignore', 2, 'inherit'] });
  try {
    for (const [, bench] of parts) await bench(figures, home);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}
