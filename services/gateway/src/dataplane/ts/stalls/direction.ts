import { STALL_RULE } from '../../stall-rule.ts';

export type Pace = 'fast' | 'slow' | 'stalled';

const END_BYTES = 1;

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
    const isWaiting = seen.bytes > fewBytes;
    // The end of stream is a byte that is not taken, too.
    const isEnd = this.takenBytes - seen.taken === END_BYTES;
    const taken = isEnd ? this.takenBytes : seen.taken;
    // Less than before: that was too much. What is written while the queues are read is in none of them.
    this.#movedTaken = Math.min(this.#movedTaken, taken);
    // Nobody stalls who has nothing to take.
    if (!isWaiting || taken - this.#movedTaken >= STALL_RULE.movingBytes) {
      this.#movedTaken = taken;
      this.movedMs = nowMs;
    }
    this.pace = isWaiting ? this.#paceOf(taken - this.takenBytes, seen.bytes, nowMs) : 'fast';
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
