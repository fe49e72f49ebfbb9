import { openAsBlob } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { changedFile, PARTS_FROM_BYTES } from '@skerry/client/upload';
import { AppError } from '@skerry/protocol/forms';
import { unreadable } from './read-text.ts';

/**
 * A file that a person named, to be hashed and sent. What is hashed is what is sent, whatever others write to the file meanwhile: a
 * small one is read at once, also where the system does not tell its size, and a Blob of one that was changed cannot be read.
 * @throws AppError INVALID_PARAMETERS
 */
export async function openBlob(path: string): Promise<Blob> {
  try {
    const found = await stat(path);
    if (found.isDirectory())
      throw new AppError(
        'INVALID_PARAMETERS',
        `${path} is a directory: pack it into one file, such as with tar or zip, and name that`,
      );
    if (!found.isFile()) throw new AppError('INVALID_PARAMETERS', `${path} is not a file`);
    return found.size < PARTS_FROM_BYTES ? new Blob([await readFile(path)]) : await openAsBlob(path);
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw unreadable(path, error);
  }
}

/** Throws INVALID_PARAMETERS where the file behind it was changed or removed since it was opened. */
export async function checkReadable(file: Blob): Promise<void> {
  await file
    .slice(0, 1)
    .arrayBuffer()
    .catch((error: unknown) => {
      throw changedFile(error);
    });
}
