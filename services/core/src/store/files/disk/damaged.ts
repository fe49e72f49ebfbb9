import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissing, renameDurably } from '@skerry/kit';
import type { ItemHash } from '@skerry/protocol';

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

  /** Puts one there. */
  async put(hash: ItemHash): Promise<void> {
    const directory = join(this.#root, DAMAGED);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await renameDurably(join(this.#root, hash.slice(0, 2), hash.slice(2, 4), hash), join(directory, hash));
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
