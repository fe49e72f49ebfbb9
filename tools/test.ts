import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '@skerry/kit';
import { startTestServer } from '../packages/database/src/testing/server.ts';
import { checkSources } from './check.ts';
import { ensurePrograms } from './prerequisites.ts';
import { runProgram } from './run.ts';
import { batch, packageOf } from './runner/batches.ts';
import { type Budget, budgetOf, listGrown, type Spent, sumUp, tabulate } from './runner/budget.ts';
import { errorsOf, type FileErrors, tellErrors } from './runner/closing.ts';
import { CpuAccounts, type CpuMeter } from './runner/cpu.ts';
import { Deadlocks } from './runner/deadlocks.ts';
import { makeRunDirectory } from './runner/directory.ts';
import { type FileOutcome, runFiles } from './runner/file.ts';
import {
  busyFactor,
  END_TO_END_LIMIT_MS,
  IDLE_LIMIT_MS,
  QUICK_LIMIT_MS,
  RUN_LIMIT_MS,
} from './runner/limits.ts';
import { endAbandoned, ProcessTree } from './runner/processes.ts';
import { ROOT } from './source.ts';
import { parseCommand } from './usage.ts';

/**
 * `npm test`: format, lint and types; then every test, in lanes in which one file runs after another. Those that boot machines
 * (`*.vm.e2e.test.ts`) have a lane, since an emulated one keeps one core busy; the other end-to-end ones have one, since they
 * wait most of their time; two of quick ones fill what is left, and small ones of a package share a process. A lane that is done helps
 * the others.
 * Whatever a file does, the run ends: each file has a limit, and so has the whole.
 */
const USAGE = `npm test [-- [--quick] [PATTERN ...]]

Checks format, lint and types, then runs the tests; with a PATTERN, only the files whose path holds
it, or the file that it names.

  --quick                without the end-to-end tests
  --file-limit SECONDS   a file that runs longer is ended and fails
  --idle-limit SECONDS   so is one that does not end after its last test
  --run-limit SECONDS    the whole run is ended and fails
  --json                 at the end a record on standard output; everything else goes to standard error
  --write-budget         keeps what the files took of the processor as what they may take; takes a whole run
  -h, --help             this text

Limits grow on a machine that others keep busy, unless they are given. Exit code 0: all passed.`;
const { values, positionals } = parseCommand(USAGE, {
  options: {
    quick: { type: 'boolean', default: false },
    'file-limit': { type: 'string' },
    'idle-limit': { type: 'string' },
    'run-limit': { type: 'string' },
    json: { type: 'boolean', default: false },
    'write-budget': { type: 'boolean', default: false },
  },
  allowPositionals: true,
});

/** Beside those of machines and end-to-end tests: half of a quick file's time is waiting. */
const QUICK_LANES = 2;
/** Ending everything may take this long at most. */
const END_LIMIT_MS = 30_000;

/** pino's `warn`. */
const SHOWN_FROM = 40;

const secondsOf = (value: string | undefined) => (value === undefined ? undefined : Number(value) * 1000);
const fileLimitMs = secondsOf(values['file-limit']);
const idleLimitMs = secondsOf(values['idle-limit']);
const runLimitMs = secondsOf(values['run-limit']) ?? RUN_LIMIT_MS;

/** What a complete run may take of the processor, file by file. */
const BUDGET = `${ROOT}tools/runner/budget.json`;
const budget = JSON.parse(readFileSync(BUDGET, 'utf8')) as Budget;
/** So that no lane is left with a long file at the end. */
const heaviestFirst = (paths: readonly string[]) =>
  paths.toSorted((one, other) => (budget[other] ?? 0) - (budget[one] ?? 0));

/** Compiles what most tests start. */
const WARM = 'tools/runner/warm.ts';
/** Leaves the image that the other machines boot. */
const BUILDS_IMAGE = 'services/compute/src/images/images.vm.e2e.test.ts';

interface Tally {
  passed: number;
  /** A line each. */
  failed: string[];
  /** Why, as far as tests said so. */
  errors: FileErrors[];
  skipped: string[];
  /** What did not pass in a process that files share; its file ran again by itself, and that counts. */
  again: string[];
}

/** Files whose processes may take as long. */
interface Queue {
  /** Each in a process. */
  readonly batches: string[][];
  readonly limitMs: number;
}

interface Files {
  readonly quick: string[];
  readonly endToEnd: string[];
  readonly machines: string[];
}

function listTests(): Files {
  const named = positionals.filter((path) => path.endsWith('.ts') && existsSync(`${ROOT}${path}`));
  const patterns = positionals.filter((path) => !named.includes(path));
  const found = globSync('{packages,services,apps,devnet,tools}/**/*.test.ts', {
    cwd: ROOT,
    exclude: ['**/node_modules/**', '**/*.soak.test.ts'],
  }).filter((path) => positionals.length === 0 || patterns.some((pattern) => path.includes(pattern)));
  const all = [...new Set([...named, ...found])].sort();
  const isEndToEnd = (path: string) => path.endsWith('.e2e.test.ts');
  const isMachine = (path: string) => /[./]vm\.e2e\.test\.ts$/.test(path);
  const machines = values.quick ? [] : all.filter(isMachine);
  return {
    quick: heaviestFirst(all.filter((path) => !isEndToEnd(path))),
    endToEnd: values.quick ? [] : heaviestFirst(all.filter((path) => isEndToEnd(path) && !isMachine(path))),
    machines: heaviestFirst(machines).sort(
      (one, other) => Number(other === BUILDS_IMAGE) - Number(one === BUILDS_IMAGE),
    ),
  };
}

const startMs = performance.now();
const say = values.json ? console.error : console.log;
endAbandoned();
const accounts = new CpuAccounts();
const spent: Spent[] = [];
let database: CpuMeter | undefined;
const deadlocks = new Deadlocks();
const directory = await makeRunDirectory();
const tally: Tally = { passed: 0, failed: [], errors: [], skipped: [], again: [] };
/** What runs now. */
const running = new Set<string>();
const stop = new AbortController();

const nameOf = (paths: readonly string[]) =>
  paths.length === 1 ? paths[0]! : `${packageOf(paths[0]!)}, files that share a process`;

async function runTogether(paths: readonly string[], limitMs: number): Promise<FileOutcome> {
  for (const path of paths) running.add(path);
  const outcome = await runFiles({
    paths,
    limitMs: () => fileLimitMs ?? limitMs * busyFactor(),
    idleLimitMs: () => idleLimitMs ?? IDLE_LIMIT_MS * busyFactor(),
    signal: stop.signal,
    accounts,
  });
  spent.push({ what: nameOf(paths), seconds: outcome.cpuSeconds });
  for (const path of paths) running.delete(path);
  const isCounted = paths.length === 1 || outcome.failed.length === 0 || stop.signal.aborted;
  const title = `\n${paths.join('\n')} (${(outcome.elapsedMs / 1000).toFixed(1)} s, ${outcome.cpuSeconds.toFixed(1)} CPU s)`;
  if (!isCounted) {
    const { kept } = outcome;
    const which = kept.paths.length > 0 ? 'each that did not pass' : 'each';
    say(`${title}\nfailed in one process; ${which} runs again in its own: ${outcome.failed.join('; ')}`);
    tally.passed += kept.passed;
    tally.skipped.push(...kept.skipped);
    // It may pass by itself: then this, and a line at the end, is all that is ever told of it.
    tally.again.push(...outcome.failed);
    for (const error of outcome.errors) say(`  ${error}`);
    return outcome;
  }
  tally.passed += outcome.passed;
  tally.failed.push(...outcome.failed);
  tally.errors.push({ file: nameOf(paths), errors: errorsOf(outcome), hasReason: outcome.hasReason });
  tally.skipped.push(...outcome.skipped);
  say(`${title}\n${outcome.output.trimEnd()}`);
  return outcome;
}

/**
 * Takes files from queues, one after another, which others may do as well; what one prints is shown when it has ended. Of
 * files that share a process, those that do not pass are run by themselves, and only that counts.
 */
async function runLane(queues: readonly Queue[]): Promise<void> {
  for (const { batches, limitMs } of queues) {
    for (let paths = batches.shift(); paths && !stop.signal.aborted; paths = batches.shift()) {
      const { failed, kept } = await runTogether(paths, limitMs);
      if (paths.length > 1 && failed.length > 0 && !stop.signal.aborted)
        batches.unshift(...paths.filter((path) => !kept.paths.includes(path)).map((path) => [path]));
    }
    tally.failed.push(...batches.splice(0).flatMap((paths) => paths.map((path) => `${path} was not run`)));
  }
}

/** The log of the database: what is no statement's fault is shown, and what no test may leave there is noted. */
function readLogLine(line: string): void {
  const { level, msg } = JSON.parse(line) as { level: number; msg: string };
  deadlocks.note(msg);
  if (level >= SHOWN_FROM) process.stderr.write(line);
}

/** Ends with this process. */
async function startSharedDatabase(): Promise<string> {
  const server = await startTestServer(createLogger('test-database', 'debug', { write: readLogLine }));
  database = accounts.meter(server.pid, new ProcessTree(server.pid));
  return server.url;
}

/** Where it fails, whatever needs what it could not load says why. */
const warm = () =>
  runProgram(process.execPath, [`--import=${import.meta.resolve('@skerry/kit/resolve')}`, WARM], 2);

/** What the run took of the processor, and which files take more than when somebody last looked. */
function tellCpu(seconds: number) {
  if (database) spent.push({ what: 'the database server that tests share', seconds: database.read() });
  const sums = sumUp(spent);
  const whole = accounts.readTotal();
  const grown = listGrown(sums, budget);
  say(`\n${tabulate(sums, whole, { seconds, cores: availableParallelism() })}`);
  if (!accounts.isExact) say('At least: control groups, which count exactly, cannot be made here.');
  for (const line of grown) say(`GREW: ${line}`);
  if (values['write-budget']) writeFileSync(BUDGET, `${JSON.stringify(budgetOf(sums), undefined, 2)}\n`);
  return {
    seconds: whole ?? sums.reduce((sum, one) => sum + one.seconds, 0),
    exact: accounts.isExact,
    files: sums,
    grown,
  };
}

function finish(): never {
  tally.failed.push(...deadlocks.found.map((told) => `the database that tests share: ${told}`));
  const elapsedSeconds = (performance.now() - startMs) / 1000;
  const cpu = tellCpu(elapsedSeconds);
  const seconds = Math.round(elapsedSeconds);
  for (const what of tally.skipped) say(`NOT RUN HERE: ${what}`);
  for (const what of tally.again) say(`RAN AGAIN: ${what}`);
  for (const told of tellErrors(tally.errors)) say(told);
  for (const what of tally.failed) say(`FAILED: ${what}`);
  say(`\n${quick.length} quick and ${endToEnd.length + machines.length} end-to-end files in ${seconds} s`);
  say(`${tally.passed} passed, ${tally.failed.length} failed, ${tally.skipped.length} skipped`);
  const errors = tally.errors.flatMap((file) => file.errors);
  if (values.json) process.stdout.write(`${JSON.stringify({ ...tally, errors, seconds, cpu })}\n`);
  // After what others do at the end: the database server's files are in it.
  process.once('exit', () => {
    directory[Symbol.dispose]();
    accounts.close();
  });
  process.exit(tally.failed.length > 0 || tally.passed === 0 ? 1 : 0);
}

/** Files that run are ended and tell what they were doing; whatever then still runs is ended without a word. */
function endRun(why: string): void {
  if (stop.signal.aborted) return;
  const what = running.size > 0 ? [...running].join(', ') : 'no test file';
  say(`\nThe run ${why}; running: ${what}`);
  tally.failed.push(`the run ${why}; running: ${what}`);
  stop.abort(`was ended, since the run ${why}`);
  const end = (): void => {
    new ProcessTree(process.pid).kill();
    finish();
  };
  if (running.size === 0) end();
  else setTimeout(end, END_LIMIT_MS);
}

const { quick, endToEnd, machines } = listTests();
function watchRun(): void {
  const leftMs = runLimitMs * (values['run-limit'] === undefined ? busyFactor() : 1) - performance.now();
  if (leftMs <= 0) endRun(`took longer than ${Math.round(performance.now() / 60_000)} minutes`);
  else setTimeout(watchRun, leftMs).unref();
}
watchRun();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => endRun(`was ended by ${signal}`));
process.once('disconnect', () => endRun('lost whoever started it'));

await ensurePrograms();
process.env.TMPDIR = directory.path;
// A test file, and each of the many processes that some start, is half of its time at compiling what all share.
process.env.NODE_COMPILE_CACHE ||= join(directory.path, 'compiled');
if (positionals.length === 0) {
  const [failed] = await Promise.all([checkSources(values.json ? 2 : 1), warm()]);
  tally.failed.push(...failed);
}
// One database server for all files; each test makes a database of its own on it.
process.env.SKERRY_TEST_DATABASE_URL ||= await startSharedDatabase();
const alone = (paths: readonly string[]) => paths.map((path) => [path]);
const queues = {
  quick: { batches: batch(quick), limitMs: QUICK_LIMIT_MS },
  endToEnd: { batches: alone(endToEnd), limitMs: END_TO_END_LIMIT_MS },
  machines: { batches: alone(machines), limitMs: END_TO_END_LIMIT_MS },
};
await Promise.all([
  runLane([queues.machines, queues.endToEnd, queues.quick]),
  runLane([queues.endToEnd, queues.quick]),
  ...Array.from({ length: QUICK_LANES }, () => runLane([queues.quick, queues.endToEnd])),
]);
finish();
