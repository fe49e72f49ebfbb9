import type { AskedSource, Want } from './asked-source.ts';

/** An honest source may be slow: what was in vain before has more minutes to come, up to so many. */
const SLOW_MINUTES_MAX = 10;

/** Of one file. */
export interface Attempt {
  /** Tries in a row that were in vain. */
  attempts: number;
  nextMs: number;
  /** Ends the try that runs; undefined where none does. */
  running: AbortController | undefined;
  /** Whether all sources were asked for it once. */
  isKnown: boolean;
  /** Those that were asked in this try; the others rest, or have no place free. */
  readonly asked: Set<AskedSource>;
  /** When the first of them was asked. */
  sinceMs: number;
}

export const newAttempt = (): Attempt => ({
  ...{ attempts: 0, nextMs: 0, running: undefined, isKnown: false },
  ...{ asked: new Set(), sinceMs: 0 },
});

/** What a file is tried for. */
export interface Trying {
  readonly want: Want;
  /** Whether nobody waits for it. */
  readonly isBehind: boolean;
  /** Who says to have it, where that is why. */
  readonly from?: AskedSource;
}

/**
 * As what a source is asked for a file in a try, if it is: where one said to have it, others are asked who say so as well, and the rest only
 * if it comes slowly: names that nobody has are made up at no cost.
 */
export function wantOf(
  name: string,
  one: AskedSource,
  { asked }: Attempt,
  { want, isBehind, from }: Trying,
  isSlow: boolean,
): Want | undefined {
  if (!from) return asked.has(one) ? undefined : want;
  if (one === from || one.survey?.held.has(name)) return 'held';
  return isSlow ? (isBehind ? 'missed' : 'again') : undefined;
}

/** Where nobody waits for a file, it may take its time. */
export const minutesOf = ({ attempts }: Attempt, { isBehind }: Trying) =>
  isBehind ? SLOW_MINUTES_MAX : Math.min(attempts + 1, SLOW_MINUTES_MAX);
