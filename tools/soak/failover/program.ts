import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';

/** A program of a server, which is started again after it was killed. */
export class Program {
  readonly #command: readonly string[];
  readonly #env: Readonly<Record<string, string>>;
  readonly #log: string;
  #child: ChildProcess | undefined;

  constructor(command: readonly string[], env: Readonly<Record<string, string>>, log: string) {
    this.#command = command;
    this.#env = env;
    this.#log = log;
  }

  get pid(): number {
    return this.#child!.pid!;
  }

  start(): void {
    const log = openSync(this.#log, 'a');
    const [program, ...args] = this.#command as [string, ...string[]];
    const env = { PATH: process.env.PATH, LANG: 'C.UTF-8', ...this.#env };
    this.#child = spawn(program, args, { stdio: ['ignore', log, log], env });
    closeSync(log);
  }

  async kill(): Promise<void> {
    const child = this.#child!;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }
}
