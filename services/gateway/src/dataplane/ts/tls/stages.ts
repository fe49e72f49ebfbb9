import type { Faults } from '../faults.ts';

export type Stage = 'undecided' | 'connecting' | 'open' | 'lingering';

/** Something that must leave a stage, or be touched, in time. */
export interface Staged {
  stage: Stage | undefined;
  /** When it entered or was touched last, in ticks. */
  tick: number;
  /** Leaves its stage. */
  onExpired(): void;
  /** Leaves every stage. */
  destroy(): void;
}

const TICKS_PER_TIMEOUT = 16;
const MIN_TICK_MS = 10;

const expire = (one: Staged) => one.onExpired();
const destroy = (one: Staged) => one.destroy();

/** What is in each stage, oldest first, and one clock for all: a timer for each connection costs more than the rest of it. */
export class Stages<One extends Staged> {
  readonly #sets: Readonly<Record<Stage, Set<One>>> = {
    undecided: new Set(),
    connecting: new Set(),
    open: new Set(),
    lingering: new Set(),
  };
  readonly #limits: readonly (readonly [Set<One>, number])[];
  readonly #tickMs: number;
  readonly #faults: Faults;
  #timer: NodeJS.Timeout | undefined;
  #tick = 0;
  #size = 0;

  constructor(timeoutsMs: Readonly<Record<Stage, number>>, faults: Faults) {
    this.#faults = faults;
    this.#tickMs = Math.max(MIN_TICK_MS, Math.min(...Object.values(timeoutsMs)) / TICKS_PER_TIMEOUT);
    this.#limits = (Object.keys(timeoutsMs) as Stage[]).map((stage) => [
      this.#sets[stage],
      Math.ceil(timeoutsMs[stage] / this.#tickMs),
    ]);
  }

  get size(): number {
    return this.#size;
  }

  count(stage: Stage): number {
    return this.#sets[stage].size;
  }

  /** What is in a stage, the oldest first. */
  in(stage: Stage): Iterable<One> {
    return this.#sets[stage];
  }

  /** Everything; it may leave on the way. */
  *[Symbol.iterator](): Generator<One> {
    for (const [set] of this.#limits) yield* set;
  }

  enter(one: One, stage: Stage): void {
    if (one.stage !== undefined) this.#sets[one.stage].delete(one);
    else if (this.#size++ === 0) this.#timer = setInterval(() => this.#expire(), this.#tickMs);
    one.stage = stage;
    one.tick = this.#tick;
    this.#sets[stage].add(one);
  }

  /** It is not idle: it becomes the newest of its stage. */
  touch(one: One): void {
    if (one.tick === this.#tick || one.stage === undefined) return;
    this.enter(one, one.stage);
  }

  leave(one: One): void {
    if (one.stage === undefined) return;
    this.#sets[one.stage].delete(one);
    one.stage = undefined;
    if (--this.#size === 0) clearInterval(this.#timer);
  }

  #expire(): void {
    this.#tick++;
    for (const [set, limit] of this.#limits)
      for (const one of set) {
        if (this.#tick - one.tick <= limit) break;
        this.#faults.attempt(expire, one);
        // It failed, and would fail again.
        if (set.has(one)) this.#faults.attempt(destroy, one);
      }
  }
}
