import { OPERATION_WINDOW_MS } from '@skerry/protocol';

/** So many operations are remembered; more within the window are refused rather than forgotten. */
const REMEMBERED_MAX = 20_000;

/** Operations that were carried out, for as long as their signature would be taken again. */
export class Replays {
  readonly #seen = new Map<string, number>();

  /** Whether an operation was not seen before; it is from now on. */
  isNew(operation: string, nowMs: number): boolean {
    for (const [old, untilMs] of this.#seen) {
      if (untilMs > nowMs) break;
      this.#seen.delete(old);
    }
    if (this.#seen.has(operation) || this.#seen.size >= REMEMBERED_MAX) return false;
    this.#seen.set(operation, nowMs + 2 * OPERATION_WINDOW_MS);
    return true;
  }
}
