import { constants, createReadStream } from 'node:fs';
import { mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { DiskReserve } from '@skerry/database';
import { asStorageError } from '../storage-error.ts';
import type { Begun, PartHold, PartsPlace } from './place.ts';

const { O_CREAT, O_WRONLY } = constants;

/** A file for each, under its name. They outlast broken connections and this process. */
export class DirectoryPlace implements PartsPlace {
  readonly #directory: string;
  readonly #wholes: string;
  readonly #reserve: DiskReserve;

  /** @param wholes where files are put together */
  constructor(directory: string, wholes: string, reserve: DiskReserve) {
    this.#directory = directory;
    this.#wholes = wholes;
    this.#reserve = reserve;
  }

  hold(restBytes: number, sizeBytes: number): PartHold {
    using stack = new DisposableStack();
    const rest = stack.use(this.#reserve.hold(restBytes, this.#directory));
    const whole = stack.use(this.#reserve.hold(sizeBytes, this.#wholes));
    whole.expect(sizeBytes - restBytes);
    const held = stack.move();
    return {
      use(bytes) {
        rest.use(bytes);
        whole.expect(bytes);
      },
      [Symbol.dispose]: () => held.dispose(),
    };
  }

  lackBytes(): number {
    return this.#reserve.lackBytes(this.#directory);
  }

  async list(): Promise<Begun[]> {
    const names = await readdir(this.#directory).catch(() => []);
    const found = await Promise.all(
      names.map(async (name): Promise<Begun[]> => {
        const file = await stat(this.#pathOf(name)).catch(() => undefined);
        return file ? [{ name, writtenMs: file.mtimeMs, receivedBytes: file.size }] : [];
      }),
    );
    return found.flat();
  }

  async received(name: string): Promise<number> {
    return (await stat(this.#pathOf(name)).catch(() => undefined))?.size ?? 0;
  }

  async write(name: string, before: number, source: AsyncIterable<Buffer>): Promise<number> {
    let received = before;
    try {
      await mkdir(this.#directory, { recursive: true });
      // Each byte to its place: a process of the same directory that was frozen in the middle of a part may go on with it at any time.
      const handle = await open(this.#pathOf(name), O_WRONLY | O_CREAT, 0o600);
      try {
        for await (const chunk of source) {
          this.#reserve.take(chunk.length);
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

  read(name: string): Readable {
    return createReadStream(this.#pathOf(name));
  }

  async remove(name: string): Promise<void> {
    await rm(this.#pathOf(name), { force: true });
  }

  #pathOf(name: string): string {
    return join(this.#directory, name);
  }
}
