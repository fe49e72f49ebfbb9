import type { Client } from './client.ts';

export interface ShareLimits {
  /** What all hold together, exempt clients included. */
  readonly total: number;
  /** Of it, what only exempt clients may take. */
  readonly reserve: number;
  /** What one client that is not exempt may hold. */
  readonly perClient: number;
}

/** Why something is not given: the client has its share already, or there is nothing left for clients like it. */
export type NoShare = 'share' | 'all';

/** What somebody holds until it gives it back. */
export interface Held {
  release(): void;
}

/**
 * A bounded thing that clients hold for a while, in whatever unit: places, bytes. Each has a share, and strangers never
 * take what is kept for exempt clients. Only who holds something is remembered.
 */
export class Shares {
  readonly #limits: ShareLimits;
  readonly #byClient = new Map<string, number>();
  #held = 0;
  #heldByStrangers = 0;

  constructor(limits: ShareLimits) {
    this.#limits = limits;
  }

  get held(): number {
    return this.#held;
  }

  heldBy(key: string): number {
    return this.#byClient.get(key) ?? 0;
  }

  /** Why a client cannot have so much now; undefined where it can. */
  whyNot({ key, isExempt }: Pick<Client, 'key' | 'isExempt'>, amount = 1): NoShare | undefined {
    const { total, reserve, perClient } = this.#limits;
    if (!isExempt && this.heldBy(key) + amount > perClient) return 'share';
    if (this.#held + amount > total) return 'all';
    if (!isExempt && this.#heldByStrangers + amount > total - reserve) return 'all';
    return undefined;
  }

  take(client: Pick<Client, 'key' | 'isExempt'>, amount = 1): Held | NoShare {
    const none = this.whyNot(client, amount);
    if (none) return none;
    const { key, isExempt } = client;
    const byStranger = isExempt ? 0 : amount;
    this.#byClient.set(key, this.heldBy(key) + amount);
    this.#held += amount;
    this.#heldByStrangers += byStranger;
    let isHeld = true;
    return {
      release: () => {
        if (!isHeld) return;
        isHeld = false;
        this.#held -= amount;
        this.#heldByStrangers -= byStranger;
        const left = this.#byClient.get(key)! - amount;
        if (left > 0) this.#byClient.set(key, left);
        else this.#byClient.delete(key);
      },
    };
  }
}
