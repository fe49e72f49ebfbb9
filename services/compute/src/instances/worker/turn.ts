import type { FairSlots } from '@skerry/kit';

/** A boot that takes longer no longer keeps others from starting. */
const LIMIT_MS = 180_000;

/** An instance's turn to boot, for which others wait. */
export class Turn {
  readonly #starts: FairSlots;
  #slot: Disposable | undefined;

  constructor(starts: FairSlots) {
    this.#starts = starts;
  }

  /** Waits for one. Rejects as FairSlots.take does. @param tell says that there are others before */
  async take(
    owner: Parameters<FairSlots['take']>[0],
    tell: () => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    if (!this.#starts.isFreeFor(owner)) await tell();
    this.end();
    this.#slot = await this.#starts.take(owner, signal);
  }

  /** It ends after a while, wherever the boot is then. */
  limit(): void {
    const slot = this.#slot;
    setTimeout(() => slot?.[Symbol.dispose](), LIMIT_MS).unref();
  }

  /** Somebody else may have it. */
  end(): void {
    this.#slot?.[Symbol.dispose]();
  }
}
