import { constants, createReadStream, openSync } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { isMissing } from '@skerry/kit';
import { MACHINE_FILES } from './machine.ts';

/** A guest can have its QEMU complain without end: of a log that has more, only the end is kept. */
const LOG_BYTES_MAX = 1024 ** 2;
const KEPT_BYTES = 64 * 1024;
const WORDS_BYTES = 4_096;
const WORDS_CHARS = 600;
/** What it wrote longer ago is not why it ended. */
const LAST_WORDS_MS = 60_000;

const pathOf = (directory: string) => join(directory, MACHINE_FILES.log);

/** Opens the log of a machine that is about to start, empty. All that is written goes to its end, also after it was cut. */
export function openMachineLog(directory: string): number {
  const { O_WRONLY, O_CREAT, O_TRUNC, O_APPEND } = constants;
  return openSync(pathOf(directory), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0o600);
}

/** Keeps only the end of a machine's log that has become long, while its QEMU writes. What it writes in that moment may be lost. */
export async function cutMachineLog(directory: string): Promise<void> {
  const path = pathOf(directory);
  const size = await stat(path).then(
    (found) => found.size,
    (error: NodeJS.ErrnoException) => {
      if (isMissing(error) || error.code === 'ENOTDIR') return 0;
      throw error;
    },
  );
  if (size <= LOG_BYTES_MAX) return;
  await using file = await open(path, constants.O_RDWR | constants.O_APPEND);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(KEPT_BYTES), 0, KEPT_BYTES, size - KEPT_BYTES);
  await file.truncate(0);
  await file.write(buffer, 0, bytesRead);
}

/** What a machine's QEMU, which has just ended, complained of last, behind a colon; nothing where it did not, or long before it ended. */
export async function readLastWords(directory: string): Promise<string> {
  const path = pathOf(directory);
  try {
    const { size, mtimeMs } = await stat(path);
    if (Date.now() - mtimeMs > LAST_WORDS_MS) return '';
    const words = createReadStream(path, { start: Math.max(0, size - WORDS_BYTES) });
    // A QEMU of an earlier release writes on at its old place after its log was cut: what lies between is all NUL.
    const tail = (await text(words)).replaceAll('\0', '').trim().slice(-WORDS_CHARS);
    return tail === '' ? '' : `: ${tail}`;
  } catch {
    return '';
  }
}
