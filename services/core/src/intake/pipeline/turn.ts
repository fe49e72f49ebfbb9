import { setImmediate as nextTurn } from 'node:timers/promises';
import { isLockedOut } from '@skerry/database';

/** The writing of a batch that is still under way when the next one begins. */
type Before = Promise<unknown> | undefined;

/** Whether a batch only waited too long for the one before it: once that is over it may be written. */
export const hasMissedTurn = (before: Before, error: unknown): boolean =>
  before !== undefined && isLockedOut(error);

/**
 * Writes batches one after another. Where the next one is ready while a commit is under way, it goes on with that: its transaction has
 * its turn on another connection as soon as the database is done with the one before, and not only once this thread has heard of it.
 * While a node catches up that saves a tenth of the time. Two are being written at most.
 * @param take the next batch; empty: none is ready
 * @param write resolves once a batch, and the one before it, is written; calls `onCommitting` when all but the commit is done
 * @returns how many the last batch had
 */
export async function writeInTurn<T>(
  take: (isNext: boolean) => readonly T[],
  write: (batch: readonly T[], before: Before, onCommitting: () => void) => Promise<unknown>,
): Promise<number> {
  let batch = take(false);
  if (batch.length === 0) return 0;
  for (let before: Before; ; ) {
    const committing = Promise.withResolvers<void>();
    const written = write(batch, before, committing.resolve);
    await Promise.race([committing.promise, written]);
    // One that is written again in parts takes long, and who waits for an answer counts in no queue.
    await before;
    // The commit is sent first.
    await nextTurn();
    const next = take(true);
    if (next.length === 0) {
      await written;
      return batch.length;
    }
    [batch, before] = [next, written];
  }
}
