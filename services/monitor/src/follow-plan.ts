import type { Visit } from './plan.ts';

export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** False when the signal ended before. */
  waitUntil(timeMs: number, signal: AbortSignal): Promise<boolean>;
}

export interface FollowOptions {
  readonly clock: Clock;
  /** Nodes that are measured at the same time. */
  readonly concurrency: number;
  readonly signal: AbortSignal;
  /** Measures one node. Never rejects. */
  readonly visit: (visit: Visit) => Promise<void>;
}

/**
 * Makes each visit at its time; at once where that is over. Where too many fall together, the later ones wait for a
 * place, in their order. Resolves when the last one is over, or when the signal ends and those that run are over.
 */
export async function followPlan(visits: readonly Visit[], options: FollowOptions): Promise<void> {
  const { clock, concurrency, signal, visit } = options;
  const running = new Set<Promise<void>>();
  for (const next of visits) {
    if (next.atMs > clock.now() && !(await clock.waitUntil(next.atMs, signal))) break;
    while (running.size >= concurrency) await Promise.race(running);
    if (signal.aborted) break;
    const one: Promise<void> = visit(next).finally(() => running.delete(one));
    running.add(one);
  }
  await Promise.all(running);
}
