import { STALL_RULE } from '../../stall-rule.ts';

export type Pace = 'fast' | 'slow' | 'stalled';

/** What a look at a direction found: bytes that its receiver has taken since the connection began, and bytes that wait for it. */
export interface Seen {
  readonly taken: number;
  readonly bytes: number;
}

/** How the receiver of one direction takes what waits for it, from the first look on. What it does not take fast counts as held. */
export class Direction {
  pace: Pace = 'fast';
  heldBytes = 0;
  movedMs: number;
  #lookedMs: number;
  takenBytes: number;
  #movedTaken: number;

  constructor({ taken }: Seen, nowMs: number) {
    this.takenBytes = this.#movedTaken = taken;
    this.#lookedMs = this.movedMs = nowMs;
  }

  /** @param fewBytes any direction may have on its way */
  look(seen: Seen, nowMs: number, fewBytes: number): void {
    const { movingBytes } = STALL_RULE;
    // The end of stream is a byte that is not taken, too: what is taken never becomes less.
    const taken = Math.max(seen.taken, this.takenBytes);
    if (taken - this.#movedTaken >= movingBytes) {
      this.#movedTaken = taken;
      this.movedMs = nowMs;
    }
    this.pace = seen.bytes <= fewBytes ? 'fast' : this.#paceOf(taken - this.takenBytes, seen.bytes, nowMs);
    this.heldBytes = this.pace === 'fast' ? 0 : seen.bytes;
    this.takenBytes = taken;
    this.#lookedMs = nowMs;
  }

  #paceOf(took: number, bytes: number, nowMs: number): Pace {
    const { slowMs, stalledMs } = STALL_RULE;
    if (took * slowMs >= bytes * (nowMs - this.#lookedMs)) return 'fast';
    return nowMs - this.movedMs >= stalledMs ? 'stalled' : 'slow';
  }
}
