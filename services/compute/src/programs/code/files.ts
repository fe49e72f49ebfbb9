import { createHash } from 'node:crypto';
import { readdir, readFile, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { makeDirectory, writeFileAtomically } from '@skerry/kit';
import type { CidSource } from '../../files/cid-file.ts';
import { limited } from '../../files/limited.ts';
import { openNetworkFile } from '../../files/network-file.ts';
import { isDiskFull } from '../../host/disk-full.ts';
import { PROGRAM_LIMITS } from '../limits.ts';

const CACHE_BYTES_MAX = 1024 * 1024 * 1024;

const DIGEST_CHARS = 64;
const sha256Of = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

/** A file's name on the disk: the name that it has on the network, and the SHA-256 of its bytes. */
const nameOf = (name: string, digest: string) => `${name}.${digest}`;

/** The files that programs are, by SHA-256 or CID: fetched once, checked each time they are read, the least used ones dropped. */
export class CodeFiles {
  readonly #core: CidSource;
  readonly #directory: string;

  constructor(core: CidSource, directory: string) {
    this.#core = core;
    this.#directory = directory;
  }

  /** @throws AppError FILE_NOT_FOUND, CID_NOT_FOUND, FILE_TOO_LARGE, FILE_CORRUPT, NOT_UNIXFS, UPSTREAM_UNAVAILABLE */
  async read(name: string): Promise<Buffer> {
    const kept = await this.#find(name);
    if (kept) return kept;
    const limit = { bytes: PROGRAM_LIMITS.codeBytes, what: 'the code of a program' };
    const { bytes: source } = await openNetworkFile(this.#core, name, limit);
    const bytes = await buffer(limited(source, limit.bytes, limit.what));
    await this.#keep(join(this.#directory, nameOf(name, sha256Of(bytes))), bytes).catch((error: unknown) => {
      // A program runs from memory: where its code cannot be kept it is fetched again some day.
      if (!isDiskFull(error)) throw error;
    });
    return bytes;
  }

  async #find(name: string): Promise<Buffer | undefined> {
    const names = await readdir(this.#directory).catch(() => []);
    const start = nameOf(name, '');
    // What a process that was killed left has a longer name; and one may be damaged beside one that is not.
    const isOwn = (one: string) => one.startsWith(start) && one.length === start.length + DIGEST_CHARS;
    for (const own of names.filter(isOwn)) {
      const path = join(this.#directory, own);
      const bytes = await readFile(path).catch(() => undefined);
      if (!bytes || own !== nameOf(name, sha256Of(bytes))) continue;
      const now = new Date();
      await utimes(path, now, now).catch(() => {});
      return bytes;
    }
    return undefined;
  }

  async #keep(path: string, bytes: Buffer): Promise<void> {
    await makeDirectory(this.#directory, 0o755);
    await this.#makeRoom(bytes.length);
    await writeFileAtomically(path, bytes, 0o644);
  }

  async #makeRoom(neededBytes: number): Promise<void> {
    const names = await readdir(this.#directory);
    const files = await Promise.all(
      names.map(async (name) => {
        const path = join(this.#directory, name);
        const { size, mtimeMs } = await stat(path).catch(() => ({ size: 0, mtimeMs: 0 }));
        return { path, size, mtimeMs };
      }),
    );
    let total = neededBytes + files.reduce((sum, { size }) => sum + size, 0);
    for (const { path, size } of files.toSorted((a, b) => a.mtimeMs - b.mtimeMs)) {
      if (total <= CACHE_BYTES_MAX) return;
      await rm(path, { force: true });
      total -= size;
    }
  }
}
