/** An archive every few seconds, each with a line, would hide everything else in the log. */
const TELL_EVERY_MS = 600_000;

/** How much was packed. */
export interface Packed {
  readonly archives: number;
  readonly messages: number;
}

/** What was packed and not told of: the first archive is to be told of at once, those that follow together. */
export class PackedTally {
  #untold: Packed = { archives: 0, messages: 0 };
  #toldMs: number | undefined;

  /**
   * One more archive.
   *
   * @param nowMs of a clock that may be set
   * @returns what to tell of, now and then
   */
  add(messages: number, nowMs: number): Packed | undefined {
    const packed = {
      archives: this.#untold.archives + 1,
      messages: this.#untold.messages + messages,
    };
    this.#untold = packed;
    if (this.#toldMs !== undefined && Math.abs(nowMs - this.#toldMs) < TELL_EVERY_MS) return undefined;
    this.#toldMs = nowMs;
    this.#untold = { archives: 0, messages: 0 };
    return packed;
  }
}
