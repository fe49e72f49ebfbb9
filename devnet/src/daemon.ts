import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { AWAIT_SETTINGS, describeFailedStart, describeLastWords, type SettingsWord } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { decideRestart, RESTART_LIMITS, type RestartLimits } from './restart.ts';

/** What is run, asked for anew at each start. */
export interface DaemonCommand {
  readonly file: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
}

export type DaemonEvent =
  | { readonly kind: 'ready'; readonly urls: readonly string[]; readonly afterMs: number }
  /** It never served yet and ended again and again; it is tried on. */
  | { readonly kind: 'failing'; readonly why: string }
  | {
      readonly kind: 'ended';
      readonly code: number | null;
      readonly signal: NodeJS.Signals | null;
      readonly restartAfterMs: number;
    }
  | { readonly kind: 'given-up'; readonly why: string };

export interface DaemonOptions {
  readonly name: string;
  /** @param urls where it served last, or undefined at the first start */
  readonly command: (urls: readonly string[] | undefined) => DaemonCommand;
  /**
   * What it is told once it may begin, beside its environment; until then it loads its code. Without it, it begins at once.
   * @param urls as for the command
   */
  readonly settings?: (urls: readonly string[] | undefined) => SettingsWord['settings'];
  /** An open file that the process inherits as descriptor 4, so that a lock on it lives as long as the process. */
  readonly lockFd: number;
  readonly onLine: (line: string, stream: 'stdout' | 'stderr') => void;
  readonly onEvent: (event: DaemonEvent) => void;
  readonly limits?: RestartLimits;
  readonly stopDeadlineMs?: number;
}

export interface Daemon {
  readonly name: string;
  /** Of the process that runs now, if one does. */
  readonly pid: number | undefined;
  readonly urls: readonly string[] | undefined;
  /**
   * Resolves at the first readiness; rejects when it ended too often before (DAEMON_FAILED), is given up (INVALID_CONFIG) or
   * is stopped. One that ended too often may still come to serve.
   */
  readonly ready: Promise<readonly string[]>;
  /** Lets one that has settings to hear begin; each later process begins at once. */
  begin(): void;
  /** Ends the process, kindly at first; resolves when it is gone. */
  stop(): Promise<void>;
  /** Ends the process at once. */
  kill(): void;
}

/** Longer than a service gives itself (kit's runService). */
const STOP_DEADLINE_MS = 20_000;

interface Run {
  readonly child: ChildProcess;
  /** When it was started, or told to begin. */
  startedMs: number;
  readyMs: number | undefined;
  readonly ended: Promise<void>;
}

/** Lines of a daemon that are kept to say why it failed. */
const LAST_LINES = 20;

/** Starts a daemon and keeps it running: a process that ends is started again, later and later up to a maximum, for ever. */
export function superviseDaemon(options: DaemonOptions): Daemon {
  const daemon = new SupervisedDaemon(options);
  daemon.start();
  return daemon;
}

class SupervisedDaemon implements Daemon {
  readonly #options: DaemonOptions;
  readonly #limits: RestartLimits;
  readonly #first = Promise.withResolvers<readonly string[]>();
  readonly #lastLines: string[] = [];
  #current: Run | undefined;
  #urls: readonly string[] | undefined;
  #failures = 0;
  #restart: NodeJS.Timeout | undefined;
  #isStopping = false;
  #hasBegun: boolean;

  constructor(options: DaemonOptions) {
    this.#options = options;
    this.#limits = options.limits ?? RESTART_LIMITS;
    this.#hasBegun = options.settings === undefined;
    // Whoever does not wait for it learns of a failure by the event.
    this.#first.promise.catch(() => {});
  }

  get name(): DaemonOptions['name'] {
    return this.#options.name;
  }

  get pid(): number | undefined {
    return this.#current?.child.pid;
  }

  get urls(): readonly string[] | undefined {
    return this.#urls;
  }

  get ready(): Promise<readonly string[]> {
    return this.#first.promise;
  }

  start(): void {
    this.#restart = undefined;
    const onLine: DaemonOptions['onLine'] = (line, stream) => this.#hear(line, stream);
    const run = spawnRun({ ...this.#options, onLine }, this.#urls, {
      onReady: (ready) => {
        this.#urls = ready;
        run.readyMs = performance.now();
        this.#options.onEvent({ kind: 'ready', urls: ready, afterMs: run.readyMs - run.startedMs });
        this.#first.resolve(ready);
      },
      onEnd: (code, signal) => {
        this.#current = undefined;
        if (!this.#isStopping) this.#restartAfter(run, code, signal);
      },
    });
    this.#current = run;
    if (this.#hasBegun) this.#tellSettings(run);
  }

  begin(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    // Between two processes there is none; the next one is told when it starts.
    if (this.#current !== undefined) this.#tellSettings(this.#current);
  }

  #tellSettings(run: Run): void {
    const settings = this.#options.settings?.(this.#urls);
    if (settings === undefined) return;
    run.startedMs = performance.now();
    // One that has ended meanwhile is started again, and told then.
    run.child.send({ settings } satisfies SettingsWord, () => {});
  }

  kill(): void {
    this.#isStopping = true;
    clearTimeout(this.#restart);
    this.#current?.child.kill('SIGKILL');
  }

  async stop(): Promise<void> {
    const { stopDeadlineMs = STOP_DEADLINE_MS } = this.#options;
    this.#isStopping = true;
    clearTimeout(this.#restart);
    this.#first.reject(new AppError('SHUTTING_DOWN', `${this.name} was stopped`));
    const run = this.#current;
    if (run === undefined) return;
    run.child.kill('SIGTERM');
    const deadline = setTimeout(() => run.child.kill('SIGKILL'), stopDeadlineMs);
    await run.ended;
    clearTimeout(deadline);
  }

  #hear(...[line, stream]: Parameters<DaemonOptions['onLine']>): void {
    this.#lastLines.push(line);
    if (this.#lastLines.length > LAST_LINES) this.#lastLines.shift();
    this.#options.onLine(line, stream);
  }

  #restartAfter({ readyMs }: Run, code: number | null, signal: NodeJS.Signals | null): void {
    const { onEvent } = this.#options;
    const servedMs = readyMs === undefined ? undefined : performance.now() - readyMs;
    const decision = decideRestart(
      { code, signal, servedMs, hasServed: this.#urls !== undefined, failures: this.#failures },
      this.#limits,
    );
    if ('giveUp' in decision) {
      onEvent({ kind: 'given-up', why: this.#giveUp(decision.giveUp) });
      return;
    }
    this.#failures = decision.failures;
    this.#restart = setTimeout(() => this.start(), decision.restartAfterMs);
    onEvent({ kind: 'ended', code, signal, restartAfterMs: decision.restartAfterMs });
    // Said once.
    if (decision.isFailing && this.#failures === this.#limits.maxFirstFailures + 1)
      onEvent({ kind: 'failing', why: this.#fail(`it exited ${this.#failures} times in a row`) });
  }

  /** Who waits for the first start learns why there is none. Returns the reason with what the daemon said last. */
  #fail(why: string): string {
    const said = describeLastWords(this.#lastLines);
    return this.#reject('DAEMON_FAILED', said === '' ? why : `${why}; its last output: ${said}`);
  }

  #giveUp(why: string): string {
    return this.#reject('INVALID_CONFIG', describeFailedStart(this.#lastLines) || why);
  }

  #reject(code: 'DAEMON_FAILED' | 'INVALID_CONFIG', reason: string): string {
    this.#first.reject(new AppError(code, `cannot start ${this.name}: ${reason}`));
    return reason;
  }
}

interface RunEvents {
  onReady(urls: readonly string[]): void;
  onEnd(code: number | null, signal: NodeJS.Signals | null): void;
}

function spawnRun(options: DaemonOptions, urls: readonly string[] | undefined, events: RunEvents): Run {
  const { file, args, environment } = options.command(urls);
  const child = spawn(file, options.settings === undefined ? args : [...args, AWAIT_SETTINGS], {
    env: environment as NodeJS.ProcessEnv,
    // A session of its own: Ctrl-C in the terminal reaches only the devnet, which then stops its daemons in order.
    detached: true,
    // The ipc channel says when it is ready, and its end tells the daemon that the devnet is gone, even by SIGKILL.
    stdio: ['ignore', 'pipe', 'pipe', 'ipc', options.lockFd],
  });
  const ended = Promise.withResolvers<void>();
  let over = false;
  const end = (code: number | null, signal: NodeJS.Signals | null) => {
    if (over) return;
    over = true;
    ended.resolve();
    events.onEnd(code, signal);
  };
  child.on('error', (error) => {
    options.onLine(`cannot run ${file}: ${error.message}`, 'stderr');
    if (child.pid === undefined) end(1, null);
  });
  // 'close' comes after the last line of output, 'exit' may come before it. Something that the daemon left running
  // (a virtual machine) may hold the pipes open, so that 'close' never comes.
  child.on('exit', (code, signal) => setImmediate(() => end(code, signal)));
  child.on('close', end);
  child.on('message', (message) => {
    const { ready, urls: where } = message as { ready?: unknown; urls?: readonly string[] };
    if (ready === true) events.onReady(where ?? []);
  });
  createInterface({ input: child.stdout! }).on('line', (line) => options.onLine(line, 'stdout'));
  createInterface({ input: child.stderr! }).on('line', (line) => options.onLine(line, 'stderr'));
  return { child, startedMs: performance.now(), readyMs: undefined, ended: ended.promise };
}
