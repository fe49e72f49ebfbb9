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
  /** Throws where nothing is known at this moment. */
  readonly look: () => Promise<T>;
  readonly isOver: (found: T) => boolean;
  /** What a person can look at where it does not happen. */
  readonly hint: string;
  /** Between two looks, in tests. */
  readonly everyMs?: number;
}

/** Of a daemon that has ended, or does not start, nothing more is to be heard. */
const isFinal = (error: unknown) => error instanceof AppError && error.code === 'DAEMON_FAILED';

const notKnown = (error: unknown) => `not known: ${error instanceof Error ? error.message : String(error)}`;

/** Waits with signs of life. What could not be looked at is looked at again. Throws TIMED_OUT with what was found last, DAEMON_FAILED. */
export async function waitUntil<T extends { readonly text: string }>(
  output: Output,
  { what, limitMs, look, isOver, hint, everyMs = LOOK_EVERY_MS }: Wait<T>,
): Promise<T> {
  const signal = AbortSignal.timeout(limitMs);
  using progress = output.progress(0);
  for (;;) {
    let text: string;
    try {
      const found = await look();
      if (isOver(found)) return found;
      ({ text } = found);
    } catch (error) {
      if (isFinal(error)) throw error;
      text = notKnown(error);
    }
    progress.show(`waiting until ${what}: ${text}`);
    if (!(await pause(everyMs, signal)))
      throw new AppError('TIMED_OUT', `not within ${renderDuration(limitMs)} that ${what}: ${text}`, {
        details: { hint },
      });
  }
}
