import { createHash } from 'node:crypto';
import { createReadStream, openAsBlob } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import type { CoreClient } from '@skerry/client/core-client';
import { PARTS_FROM_BYTES, storeInParts } from '@skerry/client/upload';
import type { StoredFileView } from '@skerry/protocol/api/core/storage';
import { AppError } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import type { Progress } from '../output/progress.ts';
import { renderBytes } from '../output/text.ts';

export interface FilePutOptions {
  readonly tags?: string[];
  readonly channel?: string;
}

interface Putting {
  readonly core: CoreClient;
  readonly path: string;
  readonly size: number;
  readonly options: FilePutOptions;
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

/** Sends a large file so that it goes on where it broke off; a small one, or where the node takes no parts, as a whole. */
async function sendFile(
  { core, path, size, options }: Putting,
  hash: string,
  progress: Progress,
): Promise<StoredFileView> {
  const file = await openAsBlob(path);
  const name = basename(path);
  if (size >= PARTS_FROM_BYTES) {
    const onPart = (received: number) =>
      progress.show(
        received === 0
          ? `uploading ${name} (${renderBytes(size)})`
          : `uploading ${name}: the node has ${renderBytes(received)} of ${renderBytes(size)}, sending the rest`,
      );
    const itemHash = await storeInParts(core, file, hash, { ...options, onPart });
    if (itemHash !== undefined) return { status: 'success', file_hash: hash, item_hash: itemHash };
  }
  progress.show(`uploading ${name} (${renderBytes(size)})`);
  return core.storeFile(file, name, hash, options);
}

export async function putFile(context: Context, path: string, options: FilePutOptions): Promise<void> {
  const core = await context.openWriter();
  const size = await sizeOf(path);
  using progress = context.output.progress();
  const hash = await hashFile(path, size, progress);
  const stored = await sendFile({ core, path, size, options }, hash, progress);
  progress[Symbol.dispose]();
  context.output.result(stored, stored.file_hash);
}
