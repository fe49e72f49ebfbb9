import { systemCodeOf } from '@skerry/kit';
import { AppError } from '@skerry/protocol';

const FULL: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT']);
/** Of a disk that fails, was made read-only for that, or is gone. */
const FAILING: ReadonlySet<unknown> = new Set([
  ...['EIO', 'EROFS', 'ENODEV', 'ENXIO'],
  ...['ESTALE', 'EUCLEAN', 'EBADMSG'],
]);
/** Of a path that is there and open to us unless somebody unmounted its disk or gave it another owner. */
const BARRED: ReadonlySet<unknown> = new Set(['ENOENT', 'EACCES', 'EPERM']);

/** Whether the system said that there is no room. */
export const isFull = (error: unknown): boolean => FULL.has(systemCodeOf(error));

/** What went wrong while a file was written, as whoever sent it is to read it: that may pass, unlike a fault of the node or of the file. */
export function asStorageError(error: unknown): unknown {
  if (error instanceof AppError) return error;
  const { path } = error as NodeJS.ErrnoException;
  const code = systemCodeOf(error);
  if (isFull(error))
    return new AppError('STORAGE_FULL', 'the node has no space for this file', { cause: error });
  // What a source fails with has no path.
  if (FAILING.has(code) || (path !== undefined && BARRED.has(code)))
    return new AppError('STORAGE_UNAVAILABLE', 'the node cannot write files at the moment; try again later', {
      cause: error,
    });
  return error;
}
