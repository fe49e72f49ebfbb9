import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { SKERRY } from '../../testing/shell.ts';

/** A daemon of the command as a process of its own, to be killed and started again at the same place. */
export class TestDaemon implements AsyncDisposable {
  readonly #name: string;
  readonly #settings: Record<string, string>;
  #child: ChildProcess | undefined;
  #url = '';

  constructor(name: 'core' | 'credit', settings: Readonly<Record<string, string>>) {
    this.#name = name;
    this.#settings = { ...settings };
  }

  get url(): string {
    return this.#url;
  }

  async start(): Promise<void> {
    const child = spawn(process.execPath, [SKERRY, this.#name], {
      env: { ...process.env, SKERRY_LOG_LEVEL: 'error', ...this.#settings },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.#child = child;
    const [{ urls }] = (await once(child, 'message')) as [{ urls: string[] }];
    this.#url = urls[0]!;
    this.#settings[`SKERRY_${this.#name.toUpperCase()}_PORT`] = new URL(this.#url).port;
  }

  /** kill -9 */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end('SIGTERM');
  }
}
