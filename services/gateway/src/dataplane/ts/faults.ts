import type { DataPlaneOptions } from '../port.ts';

/** A fault that stays is told of once in this time. */
const TELL_MS = 60_000;

/** Faults in what is done for each of many connections, by a clock or in a socket's event: one ends neither the process nor the turn of the others. */
export class Faults {
  readonly #onTrouble: DataPlaneOptions['onTrouble'];
  readonly #message: string;
  #toldMs = Number.NEGATIVE_INFINITY;

  /** @param message what is told with an error: what met the fault, and that it goes on */
  constructor(onTrouble: DataPlaneOptions['onTrouble'], message: string) {
    this.#onTrouble = onTrouble;
    this.#message = message;
  }

  attempt<One>(act: (one: One) => void, one: One): void {
    try {
      act(one);
    } catch (error) {
      this.tell(error);
    }
  }

  tell(error: unknown): void {
    const nowMs = performance.now();
    if (nowMs - this.#toldMs < TELL_MS) return;
    this.#toldMs = nowMs;
    this.#onTrouble?.({ err: error }, this.#message);
  }
}
