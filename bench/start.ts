import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { listProcessesBelow, readProcessorSeconds } from './measure/processor-time.ts';

const HERE = resolve(import.meta.dirname, '..');
const COMMAND_ROUNDS = 7;
/** Runs that are measured together: the system counts processor time in hundredths of a second. */
const RUNS = 5;
const CORE_ROUNDS = 5;
const DEVNET_ROUNDS = 3;
/** A devnet that has done what follows its start. */
const IDLE_MS = 40_000;
const READY_MS = 300_000;
const MIB = 1024;

/** Commands that a person waits for. The last one asks a core node that is not there. */
const COMMANDS: readonly (readonly string[])[] = [
  ['--help'],
  ['key', 'list'],
  ['instance', 'list', '--all', '--core', 'http://127.0.0.1:9'],
];

/** A checkout, and where its processes keep what they keep. */
interface Subject {
  readonly name: string;
  readonly checkout: string;
  readonly home: string;
}

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const environmentOf = ({ home }: Subject) => ({ PATH, HOME: home, SKERRY_HOME: home });
const commandOf = ({ checkout }: Subject) => join(checkout, 'apps/cli/bin/skerry.js');

function textOf(values: readonly number[], digits: number): string {
  const sorted = values.toSorted((a, b) => a - b);
  const [middle, least, most] = [sorted[sorted.length >> 1]!, sorted[0]!, sorted.at(-1)!];
  return `${middle.toFixed(digits)} (${least.toFixed(digits)} to ${most.toFixed(digits)})`;
}

/** Milliseconds of processor time that one run of Node takes. */
function measureRun(args: readonly string[], subject: Subject): number {
  const secondsOfChildren = () => {
    const { user, system } = process.cpuUsage();
    return readProcessorSeconds([process.pid]) - (user + system) / 1e6;
  };
  const before = secondsOfChildren();
  for (let run = 0; run < RUNS; run++)
    spawnSync(process.execPath, args, { env: environmentOf(subject), stdio: 'ignore' });
  return ((secondsOfChildren() - before) * 1000) / RUNS;
}

function benchCommands(subjects: readonly Subject[]): void {
  const ratios = new Map<string, number[]>();
  for (let round = 0; round <= COMMAND_ROUNDS; round++) {
    for (const subject of subjects) {
      const bare = measureRun(['-e', '0'], subject);
      for (const args of COMMANDS) {
        const ratio = measureRun([commandOf(subject), ...args], subject) / bare;
        const key = `${subject.name}: skerry ${args.slice(0, 2).join(' ')}`;
        // The first round fills the compile cache.
        if (round > 0) ratios.set(key, [...(ratios.get(key) ?? []), ratio]);
      }
    }
  }
  console.log('\nprocessor time of a command; ratio to "node -e 0" in the same round');
  for (const [key, values] of ratios) console.log(`${key.padEnd(40)} ${textOf(values, 1)}`);
}

async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}

/** Starts something and resolves when it says that it serves, with seconds that passed and seconds of all processors. */
async function start(
  subject: Subject,
  args: readonly string[],
  isReady: (child: ChildProcess) => Promise<unknown>,
) {
  const startMs = performance.now();
  const child = spawn(process.execPath, [commandOf(subject), ...args], {
    env: { ...environmentOf(subject), SKERRY_CORE_PORT: '0' },
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

async function benchCore(subjects: readonly Subject[]): Promise<void> {
  const found = new Map(
    subjects.map((subject) => [subject, { seconds: [] as number[], cpu: [] as number[] }]),
  );
  for (let round = 0; round <= CORE_ROUNDS; round++)
    for (const [subject, { seconds, cpu }] of found) {
      const run = await start(subject, ['core'], (child) => once(child, 'message'));
      await end(run.child);
      // The first round makes the database.
      if (round === 0) continue;
      seconds.push(run.seconds);
      cpu.push(run.cpu);
    }
  console.log('\na core node with its embedded database, until it serves');
  for (const [{ name }, { seconds, cpu }] of found)
    console.log(`${name.padEnd(40)} ${textOf(seconds, 2)} s; all processors ${textOf(cpu, 2)} s`);
}

/** Memory of processes, what they share counted in parts (proc_pid_smaps(5)), in MiB. */
async function readPss(pids: readonly number[]): Promise<number> {
  const texts = await Promise.all(
    pids.map((pid) => readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '')),
  );
  return texts.reduce((sum, text) => sum + Number(/^Pss:\s+(\d+)/m.exec(text)?.[1] ?? 0), 0) / MIB;
}

const PORTS = ['core', 'scheduler', 'compute', 'credit', 'http', 'https', 'gateway', 'status'];

async function benchDevnet(subjects: readonly Subject[]): Promise<void> {
  const up = ['up', '--json', '--quiet', ...PORTS.flatMap((name) => [`--${name}-port`, '0'])];
  const found = new Map(
    subjects.map((subject) => [
      subject,
      { seconds: [] as number[], cpu: [] as number[], pss: [] as number[] },
    ]),
  );
  for (let round = 0; round <= DEVNET_ROUNDS; round++)
    for (const [subject, { seconds, cpu, pss }] of found) {
      const run = await start(subject, up, (child) => once(child.stdout!, 'data'));
      if (round > 0) {
        seconds.push(run.seconds);
        cpu.push(run.cpu);
        if (round === DEVNET_ROUNDS) {
          await delay(IDLE_MS);
          pss.push(await readPss(listProcessesBelow([run.child.pid!])));
        }
      }
      await end(run.child);
    }
  console.log(`\na devnet, until it serves; its memory (PSS) ${IDLE_MS / 1000} s later`);
  for (const [{ name }, { seconds, cpu, pss }] of found)
    console.log(
      `${name.padEnd(40)} ${textOf(seconds, 1)} s; all processors ${textOf(cpu, 1)} s; ${textOf(pss, 0)} MiB`,
    );
}

/** What commands and daemons cost to start. With another checkout as argument, both in turns. */
export async function benchStart(): Promise<void> {
  const other = process.argv[3];
  const home = await mkdtemp(join(tmpdir(), 'skerry-bench-start-'));
  const subjects: Subject[] = [
    { name: 'this checkout', checkout: HERE, home: join(home, 'this') },
    ...(other === undefined ? [] : [{ name: other, checkout: resolve(other), home: join(home, 'other') }]),
  ];
  try {
    benchCommands(subjects);
    await benchCore(subjects);
    await benchDevnet(subjects);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}
