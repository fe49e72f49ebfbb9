import { type FileHandle, open } from 'node:fs/promises';
import { isMissing } from './atomic-file.ts';

const BLOCK_BYTES = 64 * 1024;
const NEWLINE = 0x0a;

/** The lines of a file before a byte, the last first: no more of it is read than the lines that are taken, and a block of 64 KiB. */
export async function* linesBefore(file: FileHandle, endByte: number): AsyncGenerator<string> {
  let rest: Buffer = Buffer.alloc(0);
  for (let at = endByte; at > 0; ) {
    const size = Math.min(BLOCK_BYTES, at);
    at -= size;
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size), 0, size, at);
    const text = Buffer.concat([buffer.subarray(0, bytesRead), rest]);
    let end = text.length;
    for (let newline = text.lastIndexOf(NEWLINE); newline !== -1; ) {
      yield text.toString('utf8', newline + 1, end);
      end = newline;
      newline = newline === 0 ? -1 : text.lastIndexOf(NEWLINE, newline - 1);
    }
    rest = text.subarray(0, end);
  }
  yield rest.toString('utf8');
}

/** A file to read; undefined where there is none. */
export async function openIfAny(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r');
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}
