import { readFile, stat } from 'node:fs/promises';
import { AppError } from '@skerry/protocol/forms';

/**
 * A file that a person named, as text.
 * @param tooLarge makes the error for a file of more than `maxBytes`
 * @throws AppError INVALID_PARAMETERS where it cannot be read
 */
export async function readTextFile(
  path: string,
  maxBytes: number,
  tooLarge: () => AppError,
): Promise<string> {
  try {
    if ((await stat(path)).size > maxBytes) throw tooLarge();
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new AppError(
      'INVALID_PARAMETERS',
      `cannot read ${path} (${(error as NodeJS.ErrnoException).code})`,
    );
  }
}
