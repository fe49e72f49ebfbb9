import { sha256Hex } from '@skerry/protocol';
import { SeededDice } from './dice.ts';

const HOUR_MS = 3_600_000;
/** How wrong clocks are: as a careless operator leaves them, or as somebody sets them who means no good. */
const NEAR_MS = HOUR_MS / 4;
/** What is dated by a clock that is so far ahead is due before a run ends. */
const WILD_MS = 3 * HOUR_MS;
/** A tenth of a percent: three seconds an hour. */
const DRIFT_MAX = 0.001;

/** A machine's clock: off, drifting, and set forward and back. It outlives the node's crashes. */
export class SimClock {
  readonly #reachMs: number;
  #offsetMs: number;
  #drift: number;
  #sinceMs: number;

  constructor(dice: SeededDice, nowMs: number, isWild: boolean) {
    this.#reachMs = isWild ? WILD_MS : NEAR_MS;
    this.#offsetMs = (dice.next() - 0.5) * 2 * this.#reachMs;
    this.#drift = 0;
    this.#sinceMs = nowMs;
  }

  /** Whole milliseconds since 1970, as a machine tells them. */
  read(nowMs: number): number {
    return Math.floor(nowMs + this.#offsetMs + (nowMs - this.#sinceMs) * this.#drift);
  }

  /** Somebody sets it: right, or not; from then on it drifts otherwise. */
  turn(dice: SeededDice, nowMs: number): void {
    const isSetRight = dice.chance(0.4);
    this.#offsetMs = isSetRight ? 0 : (dice.next() - 0.5) * 2 * this.#reachMs;
    this.#drift = (dice.next() - 0.5) * 2 * DRIFT_MAX;
    this.#sinceMs = nowMs;
  }

  setRight(nowMs: number): void {
    [this.#offsetMs, this.#drift, this.#sinceMs] = [0, 0, nowMs];
  }
}

/**
 * What `Math.random` would give a node at a time. Several tasks may ask at once and nobody knows which comes first: at the same
 * time all get the same.
 */
export const randomAt = (seed: number, at: number, nowMs: number): number =>
  new SeededDice(Number.parseInt(sha256Hex(`${seed} random ${at} ${nowMs}`).slice(0, 8), 16)).fraction();
