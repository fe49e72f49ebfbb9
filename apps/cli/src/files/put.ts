import { createHash } from 'node:crypto';
import { createReadStream, openAsBlob } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { AppError } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import type { Progress } from '../output/progress.ts';
import { renderBytes } from '../output/text.ts';

export interface FilePutOptions {
  readonly tags?: string[];
  readonly channel?: string;
}

/** SHA-256 of a file that may be larger than memory. */
async function hashFile(path: string, size: number, progress: Progress): Promise<string> {
  const hash = createHash('sha256');
  let done = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 })) {
    hash.update(chunk as Buffer);
    done += (chunk as Buffer).length;
    progress.show(`reading ${basename(path)}: ${Math.floor((100 * done) / Math.max(size, 1))}%`);
  }
  return hash.digest('hex');
}

async function sizeOf(path: string): Promise<number> {
  try {
    const found = await stat(path);
    if (!found.isFile()) throw new AppError('INVALID_PARAMETERS', `${path} is not a file`);
    return found.size;
  } catch (error) {
    if (error instanceof AppError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw new AppError('INVALID_PARAMETERS', `cannot read ${path} (${code})`);
  }
}

export async function putFile(context: Context, path: string, options: FilePutOptions): Promise<void> {
  const core = await context.openWriter();
  const size = await sizeOf(path);
  using progress = context.output.progress();
  const hash = await hashFile(path, size, progress);
  progress.show(`uploading ${basename(path)} (${renderBytes(size)})`);
  const { tags, channel } = options;
  const stored = await core.storeFile(await openAsBlob(path), basename(path), hash, {
    ...(tags === undefined ? {} : { tags }),
    ...(channel === undefined ? {} : { channel }),
  });
  progress[Symbol.dispose]();
  context.output.result(stored, stored.file_hash);
}
