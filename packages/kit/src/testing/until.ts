import { setTimeout as delay } from 'node:timers/promises';
import { inspect } from 'node:util';

/** What takes longer hangs: no machine is as slow as that. It is less than a test file may take, so that it is this that is told. */
const LIMIT_MS = 120_000;
const LOOK_MS = 20;
const SEEN_CHARS_MAX = 2_000;

export interface UntilOptions {
  readonly limitMs?: number;
  /** Between two looks. */
  readonly everyMs?: number;
}

type Something<T> = Exclude<T, undefined | null | false>;

/**
 * Looks again and again until there is something to see, or what is seen fits, and gives that. For what something else brings
 * about and no event tells of. Rejects with what `look` throws, and at its limit with what it waited for and what it saw last.
 */
export async function until<T>(what: string, look: () => T | Promise<T>): Promise<Something<T>>;
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  fits: (seen: T) => boolean,
  options?: UntilOptions,
): Promise<T>;
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  fits: (seen: T) => boolean = Boolean,
  { limitMs = LIMIT_MS, everyMs = LOOK_MS }: UntilOptions = {},
): Promise<T> {
  const endMs = performance.now() + limitMs;
  for (;;) {
    const seen = await look();
    if (fits(seen)) return seen;
    if (performance.now() > endMs) {
      const last = inspect(seen, { depth: 6 }).slice(0, SEEN_CHARS_MAX);
      throw new Error(`waited ${limitMs / 1000} s in vain for: ${what}; seen last: ${last}`);
    }
    await delay(everyMs);
  }
}
