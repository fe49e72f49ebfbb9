import { pause } from '@skerry/kit';
import { AppError } from '@skerry/protocol/forms';
import type { Output } from '../output/output.ts';
import { renderDuration } from '../output/text.ts';

/** What costs the node that is asked is not asked more often. */
const LOOK_EVERY_MS = 3_000;

export interface Wait<T> {
  /** What is waited for: `the network counts the node`. */
  readonly what: string;
  readonly limitMs: number;
  readonly look: () => Promise<T>;
  readonly isOver: (found: T) => boolean;
  /** What a person can look at where it does not happen. */
  readonly hint: string;
}

/** Waits with signs of life. Throws TIMED_OUT with what was found last. */
export async function waitUntil<T extends { readonly text: string }>(
  output: Output,
  { what, limitMs, look, isOver, hint }: Wait<T>,
): Promise<T> {
  const signal = AbortSignal.timeout(limitMs);
  using progress = output.progress(0);
  for (;;) {
    const found = await look();
    if (isOver(found)) return found;
    progress.show(`waiting until ${what}: ${found.text}`);
    if (!(await pause(LOOK_EVERY_MS, signal)))
      throw new AppError('TIMED_OUT', `not within ${renderDuration(limitMs)} that ${what}: ${found.text}`, {
        details: { hint },
      });
  }
}
