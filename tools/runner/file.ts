import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as delay, setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ONE_V8_THREAD } from '@skerry/kit/threads';
import { ROOT } from '../source.ts';
import type { CpuAccounts } from './cpu.ts';
import { busyFactor } from './limits.ts';
import { type Descendant, markedEnvironment, newMark, ProcessTree, readLastWords } from './processes.ts';
import type { Report } from './reporter.ts';

/** What passed although something else of its process did not. */
export interface Kept {
  readonly paths: readonly string[];
  readonly passed: number;
  readonly skipped: readonly string[];
}

export interface FileOutcome {
  readonly passed: number;
  /** A line each. */
  readonly failed: readonly string[];
  /** What failed tests said, after why suites failed. */
  readonly errors: readonly string[];
  /** Whether the first of them says why a suite failed. */
  readonly hasReason: boolean;
  readonly skipped: readonly string[];
  /** Of files that shared the process, those that passed; none where it is not known which file another's failure is of. */
  readonly kept: Kept;
  /** What the file and its children printed, and what the runner says about it. */
  readonly output: string;
  readonly elapsedMs: number;
  /** User and system time of all its processes. */
  readonly cpuSeconds: number;
}

export interface FileOptions {
  /** Relative to the root. Several run in one process. */
  readonly paths: readonly string[];
  /** After this the file and all that it started are ended. Asked again whenever it has passed. */
  readonly limitMs: () => number;
  /** After this the file is ended when none of its tests is open and it does not end. */
  readonly idleLimitMs: () => number;
  /** Ends the file early; its reason is told. */
  readonly signal: AbortSignal;
  readonly accounts: CpuAccounts;
  /** Is told what the file and its children print, as it comes. */
  readonly show?: (text: string) => void;
}

/** Finds modules as daemons do, in half of the time. */
const RESOLVE = import.meta.resolve('@skerry/kit/resolve');
/** MiB: a test makes much that is soon gone, and gathering it while the space grows from one MiB takes a fifteenth of its time. */
const YOUNG = '--min-semi-space-size=16';
const TOGETHER = fileURLToPath(new URL('./together.ts', import.meta.url));
const REPORTER = fileURLToPath(new URL('./reporter.ts', import.meta.url));
/** How often it is looked whether a file has taken too long. */
const LOOK_MS = 250;
/** What a file started may end a moment later than the file. */
const LEFT_BEHIND_MS = 5_000;
/** A file that is told to end can say which tests were open and undo what it did. */
const FAREWELL_MS = 5_000;
const KILL_LIMIT_MS = 10_000;
/** What has been printed arrives within this time once all processes are gone. */
const DRAIN_MS = 1_000;
/** More of one file's output than this is cut at its beginning. */
const OUTPUT_CHARS_MAX = 4_000_000;

const NONE_KEPT: Kept = { paths: [], passed: 0, skipped: [] };

/** A file's open tests, counts and output, as they come in. */
class Record {
  passed = 0;
  readonly failed: string[] = [];
  readonly skipped: string[] = [];
  /** Why suites failed, and what failed tests said; a file that ends by itself prints it. */
  readonly reasons: string[] = [];
  readonly #errors: string[] = [];
  readonly open = new Map<string, number>();
  /** The process has told of all its tests. */
  isWhole = false;
  /** Since when no test is open, once there was one. */
  idleSinceMs: number | undefined;
  readonly #show: FileOptions['show'];
  #kept: Kept = NONE_KEPT;
  /** How much of `passed` and `skipped` is of files that have ended. */
  #told = { passed: 0, skipped: 0 };
  /** Failures that a file of the process is known to have. */
  #attributed = 0;
  #output: string[] = [];
  #chars = 0;

  constructor(show: FileOptions['show']) {
    this.#show = show;
  }

  take(report: Report): void {
    switch (report.kind) {
      case 'open':
        this.open.set(report.test, (this.open.get(report.test) ?? 0) + 1);
        break;
      case 'closed':
        this.#close(report.test);
        break;
      case 'passed':
        this.passed++;
        break;
      case 'skipped':
        this.skipped.push(report.name);
        break;
      case 'failed':
        this.failed.push(report.name);
        (report.isOfSuite ? this.reasons : this.#errors).push(`${report.name}: ${report.error}`);
        if (!report.isStray) this.#attributed++;
        break;
      case 'file':
        if (report.hasPassed) this.#keep(report.path);
        this.#told = { passed: this.passed, skipped: this.skipped.length };
        break;
      case 'end':
        this.isWhole = true;
    }
    this.idleSinceMs = this.open.size === 0 ? performance.now() : undefined;
  }

  #keep(path: string): void {
    this.#kept = {
      paths: [...this.#kept.paths, path],
      passed: this.#kept.passed + this.passed - this.#told.passed,
      skipped: [...this.#kept.skipped, ...this.skipped.slice(this.#told.skipped)],
    };
  }

  /** A process that did more wrong than its tests told of, or ended before them, may have been made to by any of its files. */
  get kept(): Kept {
    return this.isWhole && this.#attributed === this.failed.length ? this.#kept : NONE_KEPT;
  }

  #close(test: string): void {
    const count = (this.open.get(test) ?? 1) - 1;
    if (count > 0) this.open.set(test, count);
    else this.open.delete(test);
  }

  /** Whoever is told of a few is to know why before what follows from it. */
  get errors(): string[] {
    return [...this.reasons, ...this.#errors];
  }

  /** Which tests are open, to be added to a line of `failed`. */
  get whatIsOpen(): string {
    return this.open.size > 0 ? `; open: ${[...this.open.keys()].join('; ')}` : '';
  }

  /** What else is wrong with a file that ended by itself than what it said. */
  faultOf({ exitCode, signalCode }: ChildProcess): string | undefined {
    const isNew = !this.isWhole || this.failed.length === 0;
    if (exitCode !== 0 && isNew) return `ended with ${exitCode ?? signalCode}${this.whatIsOpen}`;
    const hasNone = this.passed + this.failed.length + this.skipped.length === 0;
    if (this.isWhole) return hasNone ? 'has no test' : undefined;
    // Whatever called `process.exit` in a test took the tests behind it along. Without any `test` nothing reports.
    return `ended before its tests had${hasNone ? ', or has none' : ''}${this.whatIsOpen}`;
  }

  print(text: string): void {
    this.#show?.(text);
    this.#output.push(text);
    this.#chars += text.length;
    while (this.#chars > OUTPUT_CHARS_MAX && this.#output.length > 1)
      this.#chars -= this.#output.shift()!.length;
  }

  get output(): string {
    return this.#output.join('');
  }
}

function start(paths: readonly string[], mark: string, record: Record): ChildProcess {
  const { NODE_TEST_CONTEXT: _, ...environment } = process.env;
  const child = spawn(
    process.execPath,
    [
      '--disable-warning=ExperimentalWarning',
      `--import=${RESOLVE}`,
      YOUNG,
      // Other files run on the other cores: four threads that collect and compile only add to the work.
      ONE_V8_THREAD,
      `--test-reporter=${REPORTER}`,
      '--test-reporter-destination=stdout',
      ...(paths.length > 1 ? [TOGETHER] : []),
      ...paths.map((path) => `${ROOT}${path}`),
    ],
    {
      cwd: ROOT,
      env: markedEnvironment(mark, environment),
      // A session of its own: what it starts can be told from what others start, and Ctrl-C reaches only the runner.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
    },
  );
  child.stdout!.setEncoding('utf8').on('data', (text: string) => record.print(text));
  child.stderr!.setEncoding('utf8').on('data', (text: string) => record.print(text));
  createInterface({ input: child.stdio[3] as Readable }).on('line', (line) =>
    record.take(JSON.parse(line) as Report),
  );
  return child;
}

/** Resolves with why it must end, or with nothing once it has. */
async function waitForEnd(
  ended: Promise<unknown>,
  record: Record,
  { limitMs, idleLimitMs, signal }: FileOptions,
): Promise<string | undefined> {
  const startMs = performance.now();
  const over = new AbortController();
  const done = ended.then(() => 'ended');
  try {
    for (;;) {
      const nowMs = performance.now();
      if (signal.aborted) return String(signal.reason);
      if (nowMs - startMs >= limitMs()) return `timed out after ${Math.round((nowMs - startMs) / 1000)} s`;
      if (nowMs - (record.idleSinceMs ?? nowMs) >= idleLimitMs())
        return 'does not end although its tests have: something that it opened is still open';
      const either = AbortSignal.any([signal, over.signal]);
      const first = await Promise.race([done, delay(LOOK_MS, '', { signal: either }).catch(() => '')]);
      if (first === 'ended') return undefined;
    }
  } finally {
    over.abort();
  }
}

function describeProcesses(processes: readonly Descendant[]): string {
  return processes
    .map(({ pid, command }) => {
      const words = readLastWords(pid);
      const said = words ? `\n    it last wrote:\n${words.replaceAll(/^/gm, '      ')}` : '';
      return `  ${pid}: ${command}${said}`;
    })
    .join('\n');
}

/** Ends the file's processes, the file's own first, which may tell what it was doing. */
async function endEarly(child: ChildProcess, ended: Promise<unknown>, tree: ProcessTree): Promise<void> {
  child.kill('SIGTERM');
  const over = new AbortController();
  await Promise.race([ended, delay(FAREWELL_MS, undefined, { signal: over.signal }).catch(() => {})]);
  over.abort();
  await tree.end(KILL_LIMIT_MS * busyFactor());
}

/** Runs test files in a process of their own. When it resolves nothing that they started runs any more. */
export async function runFiles(options: FileOptions): Promise<FileOutcome> {
  const path = options.paths.join(', ');
  const startMs = performance.now();
  const record = new Record(options.show);
  const mark = newMark();
  const child = start(options.paths, mark, record);
  const tree = new ProcessTree(child.pid ?? -1, mark);
  const cpu = options.accounts.meter(child.pid ?? -1, tree);
  const ended = once(child, 'exit').catch((error: Error) => record.failed.push(`${path}: ${error.message}`));
  const closed = once(child, 'close').catch(() => {});
  const watching = tree.watch();
  const why = await waitForEnd(ended, record, options);
  if (why === undefined) {
    const left = await tree.waitForEnd(LEFT_BEHIND_MS * busyFactor());
    if (left.length > 0) {
      record.failed.push(`${path} left ${left.length} processes behind`);
      record.print(`\nThe file ended and left these behind:\n${describeProcesses(left)}\n`);
    }
  } else {
    record.failed.push(`${path} ${why}${record.whatIsOpen}`);
    record.print(`\n${path} ${why}.\n`);
    for (const error of record.errors) record.print(`  failed: ${error}\n`);
    for (const test of record.open.keys()) record.print(`  still open: ${test}\n`);
    record.print(`What ran:\n${describeProcesses(tree.listLiving())}\n`);
    await endEarly(child, ended, tree);
  }
  watching[Symbol.dispose]();
  const stuck = await tree.end(KILL_LIMIT_MS * busyFactor());
  if (stuck.length > 0) {
    record.failed.push(
      `${path} started processes that cannot be ended: ${stuck.map(({ pid }) => pid).join(', ')}`,
    );
    record.print(`\nThese cannot be ended:\n${describeProcesses(stuck)}\n`);
  }
  // Another's process may have been given the pipes. What is in them is read after timers.
  await Promise.race([closed, delay(DRAIN_MS).then(() => setImmediate())]);
  for (const stream of child.stdio) stream?.destroy();
  const cpuSeconds = cpu.read();
  cpu.close();
  const fault = why === undefined ? record.faultOf(child) : undefined;
  if (fault !== undefined) record.failed.push(`${path} ${fault}`);
  return {
    passed: record.passed,
    failed: record.failed.map((what) =>
      what.startsWith(path) || options.paths.length > 1 ? what : `${what} (${path})`,
    ),
    errors: record.errors,
    hasReason: record.reasons.length > 0,
    skipped: record.skipped,
    kept: record.kept,
    output: record.output,
    elapsedMs: performance.now() - startMs,
    cpuSeconds,
  };
}
