import { readFile } from 'node:fs/promises';
import { AppError } from '@skerry/protocol/forms';

/** The first line of a file. Throws INVALID_PARAMETERS. */
export async function readPassphrase(path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new AppError('INVALID_PARAMETERS', `cannot read the passphrase in ${path} (${error.code})`);
  });
  const [line = ''] = text.split(/\r?\n/);
  if (line === '') throw new AppError('INVALID_PARAMETERS', `the first line of ${path} holds no passphrase`);
  return line;
}
