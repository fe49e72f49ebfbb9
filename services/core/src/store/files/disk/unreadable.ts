import { Failures, type Logger, systemCodeOf } from '@skerry/kit';
import type { Unread } from '../blob-store.ts';

/** What a disk can no longer read. */
const DAMAGED: ReadonlySet<unknown> = new Set(['EIO', 'EBADMSG', 'EUCLEAN']);
/** The process may not open it, or it is something else than it has to be: the next one may be well. */
const CLOSED: ReadonlySet<unknown> = new Set(['EACCES', 'EPERM', 'EISDIR', 'ELOOP', 'ENOTDIR']);

/** Whether the disk cannot read the one thing that was asked for. */
export const isDamage = (error: unknown): boolean => DAMAGED.has(systemCodeOf(error));

/** Whether the one thing that was asked for cannot be opened. */
export const isClosed = (error: unknown): boolean => CLOSED.has(systemCodeOf(error));

/** Whether an error says something of one file or directory, and nothing of those beside it. */
export const isUnreadable = (error: unknown): boolean => isDamage(error) || isClosed(error);

/** Counts what is passed over, and tells it once for each round: a disk that fails may have thousands of such directories. */
export class PassedOver {
  readonly #failures: Failures;
  #count = 0;
  #first: unknown;

  /** @param what a sentence for the log */
  constructor(log: Logger, what: string) {
    this.#failures = new Failures({ log, what });
  }

  readonly note: Unread = (_prefix, error) => {
    if (this.#count++ === 0) this.#first = error;
  };

  /** @returns how many there were since it was told last */
  tell(): number {
    const count = this.#count;
    if (count > 0) {
      // A number more or less is no other failure; the path is the cause's.
      this.#failures.note(
        new Error(`${count} directories or files, among them this one`, { cause: this.#first }),
      );
    }
    this.#count = 0;
    this.#first = undefined;
    return count;
  }
}
