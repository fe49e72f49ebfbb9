import { stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { AppError } from '@skerry/protocol/forms';
import { renderBytes } from '../output/text.ts';
import type { Node } from './role.ts';

/** Between two looks at the disk. */
const LOOK_BYTES = 16 * 1024 * 1024;

/** What the node keeps free of the disk that a file is written to; undefined where its data is on another one, or it keeps nothing free. */
async function findReserve(path: string, { directory, keeping, config }: Node): Promise<number | undefined> {
  const [there, here] = await Promise.all([stat(dirname(path)), stat(directory)]);
  if (there.dev !== here.dev) return undefined;
  const { blocks, bsize } = await statfs(directory);
  return keeping.reserveBytes?.(config, blocks * bsize);
}

/**
 * Passes a backup on to its file for as long as the node keeps the room that it needs: a database whose log does not fit ends, and cannot
 * recover. Throws STORAGE_FULL.
 */
export async function* sparing(
  bytes: AsyncIterable<Uint8Array>,
  path: string,
  node: Node,
): AsyncGenerator<Uint8Array> {
  const reserveBytes = await findReserve(path, node);
  let left = 0;
  for await (const part of bytes) {
    if (reserveBytes !== undefined && left <= 0) {
      const { bavail, bsize } = await statfs(node.directory);
      if (bavail * bsize < reserveBytes + LOOK_BYTES)
        throw new AppError(
          'STORAGE_FULL',
          `${dirname(path)} is on the disk of the node, which keeps ${renderBytes(reserveBytes)} of it free: name a file on another disk`,
        );
      left = LOOK_BYTES;
    }
    left -= part.length;
    yield part;
  }
}
