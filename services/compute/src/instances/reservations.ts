import type { Reason } from '@skerry/protocol';
import type { Capacity } from '../host/capacity.ts';

/** How long room is kept for who asked for it. */
const LIFE_MS = 60_000;
const RESERVATIONS_MAX = 256;

export const TOO_MANY_RESERVATIONS: Reason = {
  code: 'NO_CAPACITY',
  message: 'too many others have reserved room on this node; try again in a minute',
};

interface Reservation {
  readonly need: Capacity;
  readonly expiresAtMs: number;
}

/**
 * Room that people asked to be kept while they publish an instance: one reservation each. It is kept from other
 * reservations only, not from instances that a scheduler sends: addresses cost nothing.
 */
export class Reservations {
  readonly #now: () => number;
  readonly #held = new Map<string, Reservation>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** What others have reserved. */
  beside(address: string): Capacity[] {
    const nowMs = this.#now();
    // Longer than any lasts were those that a clock made which was set back since.
    for (const [one, { expiresAtMs }] of this.#held)
      if (expiresAtMs <= nowMs || expiresAtMs > nowMs + LIFE_MS) this.#held.delete(one);
    return [...this.#held].flatMap(([one, { need }]) => (one === address ? [] : [need]));
  }

  /** When it ends, milliseconds since 1970; undefined where too many others have reserved. */
  take(address: string, need: Capacity): number | undefined {
    if (this.beside(address).length >= RESERVATIONS_MAX) return undefined;
    const expiresAtMs = this.#now() + LIFE_MS;
    this.#held.set(address, { need, expiresAtMs });
    return expiresAtMs;
  }

  /** The instance is here. */
  drop(address: string): void {
    this.#held.delete(address);
  }
}
