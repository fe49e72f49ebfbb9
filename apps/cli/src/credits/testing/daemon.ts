import { type ChildProcess, spawn } from 'node:child_process';
import { findFreePort } from '@skerry/kit';
import { hear } from '@skerry/kit/testing/heard';
import { awaitReady, endProcess } from '@skerry/kit/testing/processes';
import { SKERRY } from '../../testing/shell.ts';

/** A daemon of the command as a process of its own, to be killed and started again at the same place. */
export class TestDaemon implements AsyncDisposable {
  readonly #name: string;
  readonly #settings: Record<string, string>;
  #child: ChildProcess | undefined;
  #url = '';

  constructor(name: 'core' | 'credit' | 'monitor', settings: Readonly<Record<string, string>>) {
    this.#name = name;
    this.#settings = { ...settings };
  }

  get url(): string {
    return this.#url;
  }

  /** Has it started with other settings the next time. */
  set(settings: Readonly<Record<string, string>>): void {
    Object.assign(this.#settings, settings);
  }

  async start(): Promise<void> {
    // A monitor serves nothing.
    if (this.#name !== 'monitor')
      this.#settings[`SKERRY_${this.#name.toUpperCase()}_PORT`] ??= String(await findFreePort());
    const child = spawn(process.execPath, [SKERRY, this.#name], {
      env: { ...process.env, SKERRY_LOG_LEVEL: 'error', ...this.#settings },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    this.#child = child;
    const { urls } = await awaitReady<{ urls: string[] }>(child, `skerry ${this.#name}`, hear(child));
    this.#url = urls[0] ?? '';
  }

  /** kill -9 */
  async kill(): Promise<void> {
    await endProcess(this.#child, 'SIGKILL');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await endProcess(this.#child, 'SIGTERM');
  }
}
