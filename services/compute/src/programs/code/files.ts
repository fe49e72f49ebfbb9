import { createHash } from 'node:crypto';
import { readdir, readFile, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import type { CoreClient } from '@skerry/client';
import { makeDirectory, writeFileAtomically } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { isDiskFull } from '../../host/disk-full.ts';
import { PROGRAM_LIMITS } from '../limits.ts';

const CACHE_BYTES_MAX = 1024 * 1024 * 1024;

const sha256Of = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

/** The files that programs are, by SHA-256: fetched once, checked each time they are read, the least used ones dropped. */
export class CodeFiles {
  readonly #core: CoreClient;
  readonly #directory: string;

  constructor(core: CoreClient, directory: string) {
    this.#core = core;
    this.#directory = directory;
  }

  /** @throws AppError FILE_NOT_FOUND, FILE_TOO_LARGE, FILE_CORRUPT, UPSTREAM_UNAVAILABLE */
  async read(hash: string): Promise<Buffer> {
    const path = join(this.#directory, hash);
    const kept = await readFile(path).catch(() => undefined);
    if (kept && sha256Of(kept) === hash) {
      const now = new Date();
      await utimes(path, now, now).catch(() => {});
      return kept;
    }
    const bytes = await this.#fetch(hash);
    await this.#keep(path, bytes).catch((error: unknown) => {
      // A program runs from memory: where its code cannot be kept it is fetched again some day.
      if (!isDiskFull(error)) throw error;
    });
    return bytes;
  }

  async #keep(path: string, bytes: Buffer): Promise<void> {
    await makeDirectory(this.#directory, 0o755);
    await this.#makeRoom(bytes.length);
    await writeFileAtomically(path, bytes, 0o644);
  }

  async #fetch(hash: string): Promise<Buffer> {
    const response = await this.#core.getFile(hash);
    const parts: Uint8Array[] = [];
    let sizeBytes = 0;
    for await (const part of response.body ?? []) {
      sizeBytes += part.length;
      if (sizeBytes > PROGRAM_LIMITS.codeBytes)
        throw new AppError(
          'FILE_TOO_LARGE',
          `the code of a program is limited to ${PROGRAM_LIMITS.codeBytes} bytes`,
        );
      parts.push(part);
    }
    const bytes = Buffer.concat(parts);
    if (sha256Of(bytes) !== hash)
      throw new AppError('FILE_CORRUPT', `the core node sent the wrong bytes for the file ${hash}`);
    return bytes;
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
