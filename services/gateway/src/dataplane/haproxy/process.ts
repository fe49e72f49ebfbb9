import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import type { AdminSocket } from './admin.ts';

/** The first descriptor behind standard input, output and error. */
const FIRST_FD = 3;
const READY_POLL_MS = 10;
const READY_TIMEOUT_MS = 10_000;
/** After which a process that was told to end is killed. */
const END_TIMEOUT_MS = 5_000;
const SAID_CHARS = 2_000;

export interface HaproxyProcessOptions {
  readonly program: string;
  readonly configFile: string;
  /** Listening sockets that it gets; they are closed here by whoever opened them. */
  readonly fds: readonly number[];
  readonly onLine: (line: string) => void;
}

/** The descriptors that a process started with so many of ours has for them. */
export const inheritedFds = (count: number) => Array.from({ length: count }, (_, index) => FIRST_FD + index);

/** A running HAProxy. It ends with this process, however that ends. */
export class HaproxyProcess {
  readonly #child: ChildProcess;
  #said = '';
  #hasEnded = false;
  readonly ended: Promise<void>;

  constructor({ program, configFile, fds, onLine }: HaproxyProcessOptions) {
    const child = spawn('setpriv', ['--pdeathsig', 'TERM', '--', program, '-db', '-f', configFile], {
      stdio: ['ignore', 'pipe', 'pipe', ...fds],
    });
    this.#child = child;
    this.ended = new Promise((resolve) => {
      const end = () => {
        this.#hasEnded = true;
        resolve();
      };
      child.once('close', end).once('error', (error) => {
        this.#said += error.message;
        end();
      });
    });
    // It has neither where it could not be started for want of descriptors.
    if (child.stdout) createInterface({ input: child.stdout }).on('line', onLine);
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#said = (this.#said + text).slice(-SAID_CHARS);
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** How it ended, and the last that it said. */
  get exit(): string {
    const { exitCode, signalCode } = this.#child;
    return `${signalCode ?? `code ${exitCode}`}: ${this.#said.trim()}`;
  }

  /** Resolves when it takes orders; rejects where it ends before. */
  async ready(admin: AdminSocket): Promise<void> {
    const end = performance.now() + READY_TIMEOUT_MS;
    for (;;) {
      if (this.#hasEnded) throw new Error(`HAProxy ended: ${this.exit}`);
      const isThere = await admin.askFirst('show version').then(
        () => true,
        () => false,
      );
      if (isThere) return;
      if (performance.now() > end) throw new Error(`HAProxy did not start within ${READY_TIMEOUT_MS} ms`);
      await pause(READY_POLL_MS);
    }
  }

  /** Stops listening, and ends when its last connection has ended, or after so long. */
  async drain(timeoutMs: number): Promise<void> {
    this.#child.kill('SIGUSR1');
    const timer = setTimeout(() => this.#child.kill('SIGTERM'), timeoutMs);
    await this.ended;
    clearTimeout(timer);
  }

  /** Ends it and every connection. */
  async stop(): Promise<void> {
    this.#child.kill('SIGTERM');
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), END_TIMEOUT_MS);
    await this.ended;
    clearTimeout(timer);
  }
}
