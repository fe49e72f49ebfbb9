import { type Client, FairSlots, type FairSlotsOptions } from '@skerry/kit';

/** So many times as long as one task of a stranger took, the next one waits. */
const REST_TIMES = 3;
/** Milliseconds. However busy the machine was, nobody waits longer for what is over. */
const REST_MAX_MS = 2_000;

/** How long strangers wait after what took `tookMs`, in milliseconds. Pure. */
export const restAfter = (tookMs: number, maxMs = REST_MAX_MS): number =>
  Math.min(tookMs * REST_TIMES, maxMs);

export interface Clock {
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number;
  readonly later: (act: () => void, ms: number) => void;
}

export const CLOCK: Clock = {
  now: () => performance.now(),
  later: (act, ms) => void setTimeout(act, ms).unref(),
};

/**
 * Turns for what costs the thread that answers, and the database, much more than other requests do: each place is in use for a quarter of
 * the time at most, however often strangers ask. Whoever asks in a loop waits; our own wait for nobody.
 */
export class Paced {
  readonly #slots: FairSlots;
  readonly #clock: Clock;

  constructor(options: FairSlotsOptions, clock: Clock = CLOCK) {
    this.#slots = new FairSlots(options);
    this.#clock = clock;
  }

  /** Runs a task in its turn. Throws RATE_LIMITED, OVERLOADED; the signal's reason when it ends first; what the task throws. */
  async run<T>(
    client: Pick<Client, 'key' | 'isExempt'>,
    task: () => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    if (client.isExempt) return await task();
    const { now, later } = this.#clock;
    const slot = await this.#slots.take(client, signal);
    const beganMs = now();
    try {
      return await task();
    } finally {
      later(() => slot[Symbol.dispose](), restAfter(now() - beganMs));
    }
  }
}
