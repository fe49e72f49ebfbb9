import { setTimeout as delay } from 'node:timers/promises';
import { busyFactor } from '../../runner/limits.ts';
import { type Descendant, ProcessTree } from '../../runner/processes.ts';
import { onSignals } from './signals.ts';

/** What a soak started may end a moment later than the soak. */
const LEFT_BEHIND_MS = 5_000;
const ROUND_MS = 50;

/** What this process started, and this in turn. */
class Started {
  readonly #tree = new ProcessTree(process.pid);
  readonly #watching = this.#tree.watch();

  list(): Descendant[] {
    return this.#tree.listLiving().filter(({ pid }) => pid !== process.pid);
  }

  /** Ends all of it at once. */
  kill(): void {
    for (const { pid } of this.list()) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended by itself meanwhile.
      }
    }
  }

  /** Resolves with what is left after `limitMs`, or with nothing as soon as nothing is. */
  async waitForEnd(limitMs: number): Promise<Descendant[]> {
    for (const endMs = performance.now() + limitMs; ; await delay(ROUND_MS)) {
      const left = this.list();
      if (left.length === 0 || performance.now() >= endMs) return left;
    }
  }

  [Symbol.dispose](): void {
    this.#watching[Symbol.dispose]();
  }
}

/**
 * A soak that runs in this process: it fails as well where it leaves a process behind. What is left is ended, and so is
 * everything that it started when a signal ends this process.
 * @throws Error that names what was left
 */
export async function runSoakHere(soak: () => Promise<void>, limitMs = LEFT_BEHIND_MS): Promise<void> {
  using started = new Started();
  using signals = onSignals(() => {
    started.kill();
    signals[Symbol.dispose]();
  });
  try {
    await soak();
  } catch (error) {
    await started.waitForEnd(limitMs * busyFactor());
    started.kill();
    throw error;
  }
  const left = await started.waitForEnd(limitMs * busyFactor());
  started.kill();
  if (left.length > 0)
    throw new Error(`left ${left.length} processes behind: ${left.map(({ command }) => command).join('; ')}`);
}
