import { readFile, stat } from 'node:fs/promises';
import { AppError } from '@skerry/protocol/forms';

const WHY: Readonly<Record<string, (path: string) => string>> = {
  ENOENT: (path) => `there is no file ${path}`,
  EACCES: (path) => `no permission to read ${path}`,
  EISDIR: (path) => `${path} is a directory`,
};

/** What a person is told of a file that was named and cannot be read. */
export function unreadable(path: string, cause: unknown): AppError {
  const { code = 'unknown' } = cause as NodeJS.ErrnoException;
  const sentence = WHY[code]?.(path) ?? `cannot read ${path} (${code})`;
  return new AppError('INVALID_PARAMETERS', sentence, { cause });
}

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
    const found = await stat(path);
    // Of a directory the size says nothing, and reading says what it is.
    if (!found.isDirectory() && found.size > maxBytes) throw tooLarge();
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw unreadable(path, error);
  }
}

/** Standard input, whole. @param tooLarge makes the error for more than `maxBytes` */
export async function readWhole(
  stream: AsyncIterable<Buffer | string>,
  maxBytes: number,
  tooLarge: () => Error,
): Promise<Buffer<ArrayBuffer>> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    if (size > maxBytes) throw tooLarge();
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}
