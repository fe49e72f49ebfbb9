import { type ChildProcess, spawn } from 'node:child_process';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { programEnvironment } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { ControlGroup, GroupUsage } from '../../groups/control-group.ts';
import { PROGRAM_LIMITS } from '../limits.ts';
import { type Mount, sandboxCommand } from './command-line.ts';
import { type Frame, FrameReader, renderFrame } from './frames.ts';
import type { LogTail, LogWriter } from './log-tail.ts';
import type { RuntimeKit } from './runtimes.ts';

export interface SandboxOptions {
  readonly kit: RuntimeKit;
  readonly uid: number;
  readonly group: ControlGroup;
  readonly filterPath: string;
  /** What its program finds beside what the runtime needs. */
  readonly mounts?: readonly Mount[] | undefined;
}

/** What a program is given to run, and what of. */
export interface SandboxCode {
  readonly bytes: Buffer;
  readonly encoding: 'plain' | 'zip' | 'squashfs';
  readonly entrypoint: string | null;
  readonly environment: Readonly<Record<string, string>>;
  readonly memoryMib: number;
  readonly cpus: number;
}

/** One call, as the inside hears of it. */
export interface SandboxCall {
  /** What calls it, where that is a message and not somebody. */
  readonly trigger?: 'message';
  readonly method: string;
  readonly path: string;
  /** Without the question mark. */
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly variables: unknown;
  /** By `POST /run`: what counts are the variables. */
  readonly isRun: boolean;
  readonly body: Buffer;
}

export type SandboxResult =
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly headers: Readonly<Record<string, string>>;
      readonly body: Buffer;
    }
  /** The program raised something that nobody caught. */
  | { readonly kind: 'failed'; readonly traceback: string };

interface Pending {
  resolve(frame: Frame): void;
  reject(error: unknown): void;
}

const MIB = 1024 * 1024;
/** Between calls a program stands still; a call that follows at once spares itself the stop. */
const FREEZE_AFTER_MS = 25;
const REMOVE_TRIES = 100;
const REMOVE_PAUSE_MS = 20;
/** What a program wrote last that was held back is read after its end: that is as much as its pipes hold. */
const LAST_READ_MS = 5_000;
const SECOND_MS = 1_000;

const stringOf = (value: unknown) => (typeof value === 'string' ? value : '');

function statusOf(value: unknown): number {
  const isStatus = Number.isInteger(value) && (value as number) >= 200 && (value as number) <= 599;
  return isStatus ? (value as number) : 502;
}

function headersOf(value: unknown): Record<string, string> {
  if (typeof value !== 'object' || value === null) return {};
  return Object.fromEntries(Object.entries(value).filter(([, text]) => typeof text === 'string'));
}

/** One runtime in one sandbox: blank until code is put into it, then that program's for ever. It takes one call at a time. */
export class Sandbox {
  readonly #options: SandboxOptions;
  readonly #child: ChildProcess;
  /** It has no streams where it could not be started for want of descriptors. */
  readonly #channel: Duplex | undefined;
  readonly #reader = new FrameReader();
  readonly #ended = Promise.withResolvers<void>();
  #pending: Pending | undefined;
  #failure: AppError | undefined;
  #isOver = false;
  #log: LogTail | undefined;
  #writers: Readonly<Record<'stdout' | 'stderr', LogWriter>> | undefined;
  #logBytes = 0;
  /** Of a kept program: what it wrote since it was held back last, and until when that is. */
  #unheldBytes = 0;
  #holding: NodeJS.Timeout | undefined;
  #memoryMib = 0;
  #cpus = 0;
  readonly #startedAtMs = Date.now();
  #calls = 0;
  #freezing: NodeJS.Timeout | undefined;
  #isFrozen = false;
  #isKept = false;

  constructor(options: SandboxOptions) {
    this.#options = options;
    const { kit, uid, group, filterPath } = options;
    const { argv } = kit;
    const mounts = [...kit.mounts, ...(options.mounts ?? [])];
    const [program = '', ...args] = sandboxCommand({
      mounts,
      argv,
      uid,
      groups: group.directories,
      filterPath,
    });
    this.#child = spawn(program, args, {
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
      env: { PATH: programEnvironment().PATH },
      cwd: '/',
    });
    this.#channel = this.#child.stdio?.[3] as Duplex | undefined;
    this.#channel?.on('data', (chunk: Buffer) => this.#onData(chunk)).on('error', () => {});
    for (const type of ['stdout', 'stderr'] as const)
      this.#child[type]?.on('data', (chunk: Buffer) => this.#onOutput(type, chunk)).on('error', () => {});
    this.#child.on('error', (error) => this.#end(error.message)).on('exit', () => this.#endSoon());
  }

  /** Resolves when its runtime is there. Throws PROGRAM_CRASHED, with what the machine complained. */
  async start(): Promise<void> {
    const timer = setTimeout(() => this.kill('the runtime did not start in time'), PROGRAM_LIMITS.startMs);
    try {
      await this.#nextFrame();
      this.#freezeSoon();
    } finally {
      clearTimeout(timer);
    }
  }

  get isUsable(): boolean {
    // What a kept program has in memory is its state.
    return !this.#isOver && (this.#isKept || this.#calls < PROGRAM_LIMITS.callsPerSandbox);
  }

  /** What it may use together with its runtime. */
  get memoryMib(): number {
    return this.#memoryMib + this.#options.kit.allowanceMib;
  }

  /** What its program takes, with its runtime. */
  readUsage(): GroupUsage & { readonly startedAtMs: number; readonly cpus: number } {
    return { startedAtMs: this.#startedAtMs, cpus: this.#cpus, ...this.#options.group.readUsage() };
  }

  /** Resolves when nothing runs in it any more. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** @param isKept whether it goes on between calls, and not only answers them */
  load(code: SandboxCode, log: LogTail, isKept = false): void {
    this.#log = log;
    const writers = { stdout: log.open('stdout'), stderr: log.open('stderr') };
    this.#writers = writers;
    // It may have ended before.
    void this.#ended.promise.then(() => {
      writers.stdout.close();
      writers.stderr.close();
    });
    this.#isKept = isKept;
    this.#memoryMib = code.memoryMib;
    this.#cpus = code.cpus;
    this.#options.group.limit({
      memoryBytes: this.memoryMib * MIB,
      tasks: PROGRAM_LIMITS.tasks,
      cpus: code.cpus,
    });
    this.#thaw();
    const { encoding, entrypoint, environment } = code;
    this.#channel?.write(
      renderFrame({ kind: 'load', encoding, entrypoint, environment, isKept }, code.bytes),
    );
  }

  /**
   * Runs what is loaded before anybody calls it. A script takes its whole life for that.
   *
   * @throws AppError PROGRAM_CRASHED; the sandbox is over then
   */
  async begin(): Promise<SandboxResult> {
    return this.#resultOf(await this.#ask(renderFrame({ kind: 'start' })));
  }

  /** @throws AppError PROGRAM_TIMED_OUT, PROGRAM_CRASHED, PROGRAM_OUTPUT_TOO_LARGE; the sandbox is over then */
  async call(call: SandboxCall, timeoutMs: number): Promise<SandboxResult> {
    this.#calls++;
    this.#logBytes = 0;
    if (!this.#isKept) this.#finishLines();
    this.#thaw();
    const { body, ...head } = call;
    const timer = setTimeout(() => {
      this.#fail(
        new AppError('PROGRAM_TIMED_OUT', `the program did not answer within ${timeoutMs / 1000} s`),
      );
    }, timeoutMs);
    try {
      return this.#resultOf(await this.#ask(renderFrame({ kind: 'call', ...head }, body)));
    } finally {
      clearTimeout(timer);
      this.#freezeSoon();
    }
  }

  #resultOf({ head, body }: Frame): SandboxResult {
    if (head.isFinal === true) this.#isOver = true;
    if (head.kind === 'failed') {
      const traceback = stringOf(head.traceback);
      this.#finishLines();
      this.#log?.add('stderr', traceback);
      return { kind: 'failed', traceback };
    }
    return { kind: 'answer', status: statusOf(head.status), headers: headersOf(head.headers), body };
  }

  /** Ends it, whatever it does. */
  kill(why = 'the sandbox was stopped'): void {
    this.#fail(new AppError('PROGRAM_CRASHED', why));
  }

  /** Ends it, and the call that runs with this failure. */
  end(failure: AppError): void {
    this.#fail(failure);
  }

  /** Ends it and waits until nothing of it is left. */
  async destroy(): Promise<void> {
    this.kill();
    await this.#ended.promise;
    for (let tries = 0; tries < REMOVE_TRIES; tries++) {
      if (this.#options.group.remove()) return;
      this.#options.group.kill();
      await delay(REMOVE_PAUSE_MS);
    }
  }

  /** Of bytes that are there already: nothing may fail between the expectation of an answer and its being awaited. */
  #ask(frame: Buffer): Promise<Frame> {
    const next = this.#nextFrame();
    this.#channel?.write(frame);
    return next;
  }

  async #nextFrame(): Promise<Frame> {
    if (this.#failure) throw this.#failure;
    const { promise, resolve, reject } = Promise.withResolvers<Frame>();
    this.#pending = { resolve, reject };
    return promise;
  }

  #onData(chunk: Buffer): void {
    if (this.#failure) return;
    try {
      for (const frame of this.#reader.push(chunk)) {
        const pending = this.#pending;
        this.#pending = undefined;
        if (!pending) throw new AppError('PROGRAM_CRASHED', 'the program answered without a request');
        pending.resolve(frame);
      }
    } catch (error) {
      this.#fail(error as AppError);
    }
  }

  #onOutput(type: 'stdout' | 'stderr', chunk: Buffer): void {
    this.#logBytes += chunk.length;
    if (this.#failure && this.#log) return;
    if (this.#writers) this.#writers[type].write(chunk);
    else this.#complaint = (this.#complaint + chunk.toString('utf8')).slice(-PROGRAM_LIMITS.logTailChars);
    // What runs on between calls may say something all the time; the end of it is kept.
    if (this.#isKept) {
      this.#holdBack(chunk.length);
      return;
    }
    if (this.#logBytes <= PROGRAM_LIMITS.logBytesPerCall) return;
    const limit = PROGRAM_LIMITS.logBytesPerCall;
    this.#fail(
      new AppError('PROGRAM_OUTPUT_TOO_LARGE', `the program wrote more than ${limit} bytes in one call`),
    );
  }
  /** What came before there was a program. */
  #complaint = '';

  /** Reading takes the node's own time: a program that writes without end waits for what is left of each second. */
  #holdBack(bytes: number): void {
    const { keptLogBytesPerSecond, logPieceBytes } = PROGRAM_LIMITS;
    const { exitCode, signalCode } = this.#child;
    this.#unheldBytes += Math.max(bytes, logPieceBytes);
    if (this.#unheldBytes < keptLogBytesPerSecond || exitCode !== null || signalCode !== null) return;
    this.#unheldBytes = 0;
    for (const type of ['stdout', 'stderr'] as const) this.#child[type]?.pause();
    this.#holding = setTimeout(() => this.#readOn(), SECOND_MS);
  }

  #readOn(): void {
    clearTimeout(this.#holding);
    this.#holding = undefined;
    for (const type of ['stdout', 'stderr'] as const) this.#child[type]?.resume();
  }

  /** What a call wrote without its end is a line of its own. */
  #finishLines(): void {
    this.#writers?.stdout.finish();
    this.#writers?.stderr.finish();
  }

  /** The first failure counts. Nothing of it runs on. */
  #fail(failure: AppError): void {
    if (!this.#failure) {
      this.#failure = failure;
      this.#isOver = true;
      this.#finishLines();
      if (this.#pending) this.#log?.add('system', failure.message);
      this.#pending?.reject(failure);
      this.#pending = undefined;
    }
    this.#isFrozen = false;
    this.#options.group.kill();
    this.#child.kill('SIGKILL');
  }

  /** What it wrote last is in its pipes: that is read first. */
  #endSoon(): void {
    if (!this.#holding) return void setImmediate(() => this.#end());
    this.#readOn();
    this.#child.once('close', () => this.#end());
    this.#holding = setTimeout(() => this.#end(), LAST_READ_MS);
  }

  #end(complaint = this.#complaint.trim()): void {
    const { exitCode, signalCode } = this.#child;
    const limit = `${this.memoryMib} MiB`;
    const how = `${signalCode ?? `exit code ${exitCode}`}${complaint ? `: ${complaint.slice(-500)}` : ''}`;
    const why =
      this.#options.group.outOfMemoryKills > 0
        ? `the program exceeded its memory limit (${limit} including its runtime)`
        : `the program exited (${how})`;
    this.kill(why);
    this.#channel?.destroy();
    clearTimeout(this.#freezing);
    clearTimeout(this.#holding);
    this.#ended.resolve();
  }

  /** A sandbox that waits uses no processor, whatever its program left running. */
  #freezeSoon(): void {
    clearTimeout(this.#freezing);
    if (this.#isOver || this.#isKept) return;
    this.#freezing = setTimeout(() => {
      this.#isFrozen = true;
      this.#options.group.freeze();
    }, FREEZE_AFTER_MS);
  }

  #thaw(): void {
    clearTimeout(this.#freezing);
    if (!this.#isFrozen) return;
    this.#isFrozen = false;
    this.#options.group.thaw();
  }
}
