import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type NodeProcess, startNode } from '../../services/core/src/testing/node.ts';

const SETTINGS = { SKERRY_CORE_RATE_LIMITS: 'no', SKERRY_CORE_GOSSIP: 'no' };

/** Those that stood still have missed some of their leases. */
const AWAKE_WITHIN_MS = 30_000;
const ASK_EVERY_MS = 50;

/** Processes of one core node on one database, which stand still and end together. */
export class Processes implements AsyncDisposable {
  readonly #home: string;
  readonly #databaseUrl: string;
  readonly #started: NodeProcess[] = [];

  constructor(directory: string, databaseUrl: string) {
    this.#home = join(directory, 'home');
    this.#databaseUrl = databaseUrl;
  }

  /** Starts one more, with these roles, and gives where it answers. */
  async start(roles: string): Promise<string> {
    const settings = { ...SETTINGS, SKERRY_CORE_ROLES: roles };
    const started = await startNode(this.#home, this.#databaseUrl, settings);
    this.#started.push(started);
    return started.url;
  }

  /** What others measure meanwhile has the machine for itself. */
  pause(): void {
    for (const { child } of this.#started) child.kill('SIGSTOP');
  }

  /** Resolves when all serve again. */
  async resume(): Promise<void> {
    for (const { child } of this.#started) child.kill('SIGCONT');
    const signal = AbortSignal.timeout(AWAKE_WITHIN_MS);
    for (const { url } of this.#started)
      while (!(await fetch(`${url}/health`, { signal })).ok) await delay(ASK_EVERY_MS, undefined, { signal });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.resume();
    for (const one of this.#started) await one.end('SIGTERM');
  }
}

/** A server that does the least on this database (bare.ts), until it is disposed of. */
export async function startBare(databaseUrl: string): Promise<AsyncDisposable & { readonly url: string }> {
  const child = fork(fileURLToPath(new URL('./bare.ts', import.meta.url)), [databaseUrl]);
  const ended = once(child, 'exit');
  const started = await Promise.race([once(child, 'message'), ended.then(() => undefined)]);
  if (!started) throw new Error('the bare server ended before it was ready');
  return {
    url: `http://127.0.0.1:${started[0] as number}`,
    async [Symbol.asyncDispose]() {
      child.disconnect();
      await ended;
    },
  };
}
