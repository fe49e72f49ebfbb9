import { constants, createReadStream } from 'node:fs';
import { mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { DiskReserve } from '@skerry/database';
import { AppError } from '@skerry/protocol';
import { asStorageError } from './spool.ts';

/** A file that comes in parts. What it is called by: the same uploader begins it once. */
export interface Whole {
  /** SHA-256 of all of it. */
  readonly hash: string;
  /** Who signed that. */
  readonly address: string;
  readonly sizeBytes: number;
}

export interface PartsOptions {
  readonly directory: string;
  readonly reserve: DiskReserve;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

const { O_CREAT, O_WRONLY } = constants;

/** Files of one uploader that are not complete. */
const PER_UPLOADER = 4;
/** Of all of them, and the bytes that they may become together. */
const FILES_MAX = 64;
const BYTES_MAX = 16 * 1024 ** 3;
/** One that nobody sends on is kept for so long. */
const KEPT_MS = 24 * 3_600_000;
/** Where there is no room, one that rests for longer than this makes some: nobody holds a place by beginning. */
const RESTS_MS = 10 * 60_000;
const RETRY_AFTER_SECONDS = 10;

interface Begun extends Whole {
  readonly name: string;
  readonly receivedBytes: number;
  readonly writtenMs: number;
}

const NAME = /^([0-9a-f]{64})-(0x[0-9a-f]{40})-([0-9]{1,16})$/;
const nameOf = ({ hash, address, sizeBytes }: Whole) => `${hash}-${address.toLowerCase()}-${sizeBytes}`;

const refuse = (code: 'RATE_LIMITED' | 'OVERLOADED', message: string) =>
  new AppError(code, message, { details: { retry_after: RETRY_AFTER_SECONDS } });

/**
 * What has come of files that are sent in parts. It outlasts broken connections and this process: a part is written to a file whose
 * name says all that is known of it. Nothing of it is believed before the whole has its hash.
 */
export class Parts {
  readonly #options: PartsOptions;
  readonly #busy = new Set<string>();

  constructor(options: PartsOptions) {
    this.#options = options;
  }

  /** How many bytes there are of a file; 0 where it was not begun. */
  async received(whole: Whole): Promise<number> {
    const found = await stat(this.#pathOf(nameOf(whole))).catch(() => undefined);
    return found?.size ?? 0;
  }

  /**
   * Adds what comes, if it begins where the file ends; otherwise nothing of it is read. What came before the source failed is kept.
   * Throws RATE_LIMITED, OVERLOADED, STORAGE_FULL, FILE_TOO_LARGE, and what the source failed with.
   * @returns how many bytes there are now
   */
  async append(whole: Whole, offset: number, source: Readable): Promise<number> {
    const name = nameOf(whole);
    if (this.#busy.has(name)) throw refuse('OVERLOADED', 'another part of this file is on its way');
    this.#busy.add(name);
    try {
      await this.#makeRoom(whole, name);
      const before = await this.received(whole);
      return before === offset ? await this.#write(whole, name, before, source) : before;
    } finally {
      this.#busy.delete(name);
    }
  }

  /** All that has come. */
  read(whole: Whole): Readable {
    return createReadStream(this.#pathOf(nameOf(whole)));
  }

  async remove(whole: Whole): Promise<void> {
    await rm(this.#pathOf(nameOf(whole)), { force: true });
  }

  #pathOf(name: string): string {
    return join(this.#options.directory, name);
  }

  async #write({ sizeBytes }: Whole, name: string, before: number, source: Readable): Promise<number> {
    const { reserve } = this.#options;
    let received = before;
    try {
      // Each byte to its place: a process of the same directory that was frozen in the middle of a part may go on with it at any time.
      const handle = await open(this.#pathOf(name), O_WRONLY | O_CREAT, 0o600);
      try {
        for await (const chunk of source as AsyncIterable<Buffer>) {
          if (received + chunk.length > sizeBytes)
            throw new AppError('FILE_TOO_LARGE', `more came than the ${sizeBytes} bytes that were announced`);
          reserve.take(chunk.length);
          for (let at = 0; at < chunk.length; )
            at += (await handle.write(chunk, at, chunk.length - at, received + at)).bytesWritten;
          received += chunk.length;
        }
      } finally {
        await handle.close();
      }
    } catch (error) {
      throw asStorageError(error);
    }
    return received;
  }

  async #list(): Promise<Begun[]> {
    const names = await readdir(this.#options.directory).catch(() => []);
    const found = await Promise.all(
      names.map(async (name): Promise<Begun[]> => {
        const [, hash, address, size] = NAME.exec(name) ?? [];
        const file = await stat(this.#pathOf(name)).catch(() => undefined);
        if (hash === undefined || address === undefined || !file) return [];
        const known = { name, hash, address, sizeBytes: Number(size) };
        return [{ ...known, receivedBytes: file.size, writtenMs: file.mtimeMs }];
      }),
    );
    return found.flat();
  }

  async #drop(dropped: readonly Begun[]): Promise<void> {
    for (const { name } of dropped) await rm(this.#pathOf(name), { force: true });
  }

  /** Throws where a file that was not begun yet may not begin. */
  async #makeRoom(whole: Whole, name: string): Promise<void> {
    await mkdir(this.#options.directory, { recursive: true });
    const nowMs = this.#options.now();
    const all = await this.#list();
    const old = all.filter((one) => nowMs - one.writtenMs > KEPT_MS && !this.#busy.has(one.name));
    await this.#drop(old);
    const kept = all.filter((one) => !old.includes(one));
    if (kept.some((one) => one.name === name)) return;
    const own = kept.filter(({ address }) => address === whole.address.toLowerCase());
    if (own.length >= PER_UPLOADER)
      throw refuse(
        'RATE_LIMITED',
        `an address may have ${PER_UPLOADER} files on their way; send one to its end`,
      );
    const resting = kept
      .filter((one) => nowMs - one.writtenMs > RESTS_MS && !this.#busy.has(one.name))
      .sort((one, other) => one.writtenMs - other.writtenMs);
    const left = new Set(kept);
    const isFull = () =>
      left.size >= FILES_MAX ||
      [...left].reduce((sum, one) => sum + one.sizeBytes, whole.sizeBytes) > BYTES_MAX;
    for (const one of resting) {
      if (!isFull()) break;
      left.delete(one);
      await this.#drop([one]);
    }
    if (isFull())
      throw refuse('OVERLOADED', 'the node has no room for another file in parts; try again later');
  }
}
