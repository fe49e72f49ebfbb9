import { systemCodeOf } from '@skerry/kit';
import { AppError } from '@skerry/protocol';

/** write(2): no room, or no more room for this user. */
const CODES: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT']);
/** The same in the words of the programs that are run (strerror(3), in the C locale). */
const WORDS = /No space left on device|Disk quota exceeded/;

/** Whether something failed because a disk of this machine is full: it passes when there is room again. */
export function isDiskFull(error: unknown): boolean {
  if (error instanceof AppError) return error.code === 'STORAGE_FULL';
  return CODES.has(systemCodeOf(error));
}

export function saysDiskFull(text: string): boolean {
  return WORDS.test(text);
}

/** A system call's complaint of a full disk as STORAGE_FULL; every other error as it is. */
export function asStorageFull(error: unknown): unknown {
  if (error instanceof AppError || !isDiskFull(error)) return error;
  return new AppError('STORAGE_FULL', "this node's disk is full", { cause: error });
}
