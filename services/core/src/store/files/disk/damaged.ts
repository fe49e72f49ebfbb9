import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissing, renameDurably } from '@skerry/kit';
import type { ItemHash } from '@skerry/protocol';
import type { KeptBlob } from '../blob-store.ts';
import { pathOfBlob } from '../directory-store.ts';

/** In the directory of the blobs. */
export const DAMAGED = 'damaged';
const HASH = /^[0-9a-f]{64}$/;

/**
 * Where damaged blobs are put: they are not served under their hash any more, and are all that there is of a file that nobody else has. On
 * the same file system: each takes the room that it had.
 */
export class DamagedBlobs {
  readonly #root: string;

  /** @param root directory of the blobs */
  constructor(root: string) {
    this.#root = root;
  }

  /**
   * Puts one there.
   * @param seen as it was before it was found to be damaged
   * @returns false where it went since, or another process stored it anew: that one stays where it is
   */
  async put({ hash, sizeBytes, keptAtMs }: KeptBlob): Promise<boolean> {
    const directory = join(this.#root, DAMAGED);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const [path, aside] = [pathOfBlob(this.#root, hash), join(directory, hash)];
    try {
      await renameDurably(path, aside);
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    }
    // Looked at behind it: nothing keeps other processes from storing it between a look and the move.
    const { size, mtimeMs } = await stat(aside);
    if (size === sizeBytes && mtimeMs === keptAtMs) return true;
    await renameDurably(aside, path);
    return false;
  }

  /** Hashes of those that are there. */
  async list(): Promise<readonly ItemHash[]> {
    try {
      return (await readdir(join(this.#root, DAMAGED))).filter((name) => HASH.test(name)) as ItemHash[];
    } catch (error) {
      if (isMissing(error)) return [];
      throw error;
    }
  }

  /** Harmless where it is not there. */
  remove(hash: ItemHash): Promise<void> {
    return rm(join(this.#root, DAMAGED, hash), { force: true });
  }
}
