import { type Logger, pause } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { asStorageFull } from '../../host/disk-full.ts';
import { PROGRAM_LIMITS } from '../limits.ts';
import type { Programs } from '../programs.ts';

/** How long a program rests before it is started again. Pure. @param ends how often it ended in a row */
export const restMs = (ends: number): number =>
  Math.min(
    PROGRAM_LIMITS.keptRestartMaxMs,
    PROGRAM_LIMITS.keptRestartMs * 2 ** Math.min(30, Math.max(0, ends - 1)),
  );

export interface KeeperOptions {
  readonly programs: Pick<Programs, 'keep' | 'library' | 'logs'>;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** Keeps the persistent programs of this node running: what ended is started again, after longer and longer rests. */
export class Keeper {
  readonly #options: KeeperOptions;
  readonly #kept = new Map<string, AbortController>();
  readonly #jobs = new Set<Promise<void>>();

  constructor(options: KeeperOptions) {
    this.#options = options;
  }

  /** Starts what is new, and stops what is not wanted any more. */
  set(wanted: ReadonlySet<string>): void {
    for (const [hash, stopping] of this.#kept) {
      if (wanted.has(hash)) continue;
      stopping.abort();
      this.#kept.delete(hash);
    }
    for (const hash of wanted) {
      // Whether it was forgotten or has a newer version is found out as with every call.
      if (this.#kept.has(hash)) void this.#options.programs.library.get(hash).catch(() => {});
      else this.#start(hash);
    }
  }

  /** Resolves when none is kept any more, after the signal. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#jobs);
  }

  #start(hash: string): void {
    const stopping = new AbortController();
    this.#kept.set(hash, stopping);
    const job = this.#keep(hash, AbortSignal.any([stopping.signal, this.#options.signal]));
    this.#jobs.add(job);
    void job.finally(() => this.#jobs.delete(job));
  }

  async #keep(hash: string, signal: AbortSignal): Promise<void> {
    const { programs, log } = this.#options;
    for (let ends = 0; !signal.aborted; ) {
      const startedAtMs = performance.now();
      let why = 'the program ended';
      try {
        await programs.keep(hash, signal);
      } catch (error) {
        if (signal.aborted) return;
        why = this.#whyOf(hash, asStorageFull(error));
      }
      if (signal.aborted) return;
      ends = performance.now() - startedAtMs > PROGRAM_LIMITS.keptSteadyMs ? 1 : ends + 1;
      const waitMs = restMs(ends);
      log.debug({ program: hash, why, waitMs }, 'a persistent program is started again');
      programs.logs.find(hash)?.tail.add('system', `${why}; starting again`);
      if (!(await pause(waitMs, signal))) return;
    }
  }

  /** In the words of the program's log. What is the node's own fault is in the node's. */
  #whyOf(hash: string, error: unknown): string {
    if (error instanceof AppError) return `${error.code}: ${error.message}`;
    this.#options.log.warn({ err: error, program: hash }, 'a persistent program could not be kept running');
    return 'INTERNAL: the node failed';
  }
}
