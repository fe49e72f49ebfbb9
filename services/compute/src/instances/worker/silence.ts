import type { VmState } from '../../vm/vm.ts';

/** After so long without a word from the guest, its address is asked instead; and again, where nobody answers there. */
export const SILENCE = {
  own: { limitMs: 300_000, recheckMs: 30_000 },
  /** Guests of images that are not of the node's making do not know how to say that they are up. */
  stranger: { limitMs: 5_000, recheckMs: 2_000 },
} as const;

/**
 * Whether a guest that says nothing does not come up. One that starts itself again has booted for a moment only, however long its QEMU
 * has run. Pure.
 *
 * @param silentMs since its QEMU began
 * @param startingMs since it was said to be starting
 */
export const isAbsent = (silentMs: number, startingMs: number): boolean =>
  Math.min(silentMs, startingMs) >= SILENCE.own.limitMs;

/** So many relapses within a day are told at once; the next ones after a minute, two, four, up to an hour. */
const TOLD_AT_ONCE = 3;
const REST_BASE_MS = 60_000;
const REST_MAX_MS = 3_600_000;
const DAY_MS = 86_400_000;

/**
 * When it was told that a guest that ran is starting again, of its own accord. A guest says by itself whether it is up, as often as
 * it likes, and the network keeps each telling for good.
 */
export class Relapses {
  #toldMs: readonly number[] = [];

  /** 0 where one that begins now is to be told, and is counted; else how long it is to be kept to oneself. */
  note(nowMs: number): number {
    const told = this.#toldMs.filter((atMs) => nowMs - atMs < DAY_MS);
    const more = told.length - TOLD_AT_ONCE;
    const restMs = more < 0 ? 0 : Math.min(REST_MAX_MS, REST_BASE_MS * 2 ** more);
    const dueMs = (told.at(-1) ?? nowMs) + restMs;
    if (more >= 0 && nowMs < dueMs) return dueMs - nowMs;
    this.#toldMs = [...told, nowMs];
    return 0;
  }
}

/** What is to be said of a machine's QEMU now, where there is something. */
export type HangNews = { readonly is: 'hanging' } | { readonly is: 'answering'; readonly afterMs: number };

/**
 * What is told of a QEMU that hangs: that it does, once however often it is asked, and that it answers again. One that hangs again and
 * again, as a guest may bring about, is told as rarely as relapses.
 */
export class Hangs {
  readonly #relapses = new Relapses();
  #sinceMs: number | undefined;
  #isTold = false;

  /** It hangs, and that was told. */
  get isTold(): boolean {
    return this.#isTold;
  }

  /** @param vm how the machine is seen at a step; of one that is gone whoever ended it tells */
  note(vm: Exclude<VmState, 'gone'> | 'none', nowMs: number): HangNews | undefined {
    if (vm !== 'silent') {
      const afterMs = nowMs - (this.#sinceMs ?? nowMs);
      const isTold = this.#isTold;
      this.#sinceMs = undefined;
      this.#isTold = false;
      return isTold && vm !== 'none' ? { is: 'answering', afterMs } : undefined;
    }
    this.#sinceMs ??= nowMs;
    if (this.#isTold || this.#relapses.note(nowMs) > 0) return undefined;
    this.#isTold = true;
    return { is: 'hanging' };
  }
}
