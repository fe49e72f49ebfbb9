import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { FairSlots, within } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { CidSource } from '../../files/cid-file.ts';
import { PROGRAM_LIMITS } from '../limits.ts';
import { findReady, makeReady, type ReadyFile } from './images.ts';
import { isReadyFile, type Room } from './room.ts';

/** A file that is ready, until it is let go of. */
export interface UsedFile extends ReadyFile, Disposable {}

/**
 * Files of the network that volumes are. Fetching and unpacking one may take minutes: nobody waits for the files of another owner,
 * and no memory is held meanwhile.
 */
export class ReadyFiles {
  readonly #core: CidSource;
  readonly #room: Room;
  /** What each owner waits for: what waits in the line of one keeps no other from the same file. */
  readonly #asked = new Map<string, Promise<ReadyFile>>();
  /** What is being made, by file. */
  readonly #making = new Map<string, Promise<ReadyFile>>();
  readonly #slots = new FairSlots(PROGRAM_LIMITS.filesMade);

  constructor(core: CidSource, room: Room) {
    this.#core = core;
    this.#room = room;
  }

  /** Erases what an earlier process began to make. */
  async clear(): Promise<void> {
    const directory = this.#room.place('files');
    for (const name of await readdir(directory).catch(() => []))
      if (!isReadyFile(name)) await rm(join(directory, name), { recursive: true, force: true });
  }

  /**
   * A file for an owner's program, once it is ready.
   * @throws AppError NO_RUNNER, RATE_LIMITED, OVERLOADED where it takes longer than a call waits: it is made ready all the same, and
   *   found by the next call; and what a file may not be had for
   */
  async use(owner: string, name: string): Promise<UsedFile> {
    const find = () => findReady(this.#room.place('files'), name);
    const { found, using } = await this.#room.use(owner, name, find);
    try {
      const ready = found ?? (await within(PROGRAM_LIMITS.waitMs, this.#make(owner, name), undefined));
      if (ready) return { ...ready, [Symbol.dispose]: () => using[Symbol.dispose]() };
      throw new AppError('OVERLOADED', `the volume ${name} is being made ready; try again in a moment`);
    } catch (error) {
      using[Symbol.dispose]();
      throw error;
    }
  }

  /** Once it is the owner's turn. */
  #make(owner: string, name: string): Promise<ReadyFile> {
    const make = () => shared(this.#making, name, () => this.#makeNow(owner, name));
    return shared(this.#asked, `${owner}\n${name}`, () =>
      this.#slots.run({ key: owner, isExempt: false }, make),
    );
  }

  async #makeNow(owner: string, name: string): Promise<ReadyFile> {
    const directory = this.#room.place('files');
    const found = await findReady(directory, name);
    if (found) return found;
    using _promised = await this.#room.promise(owner, PROGRAM_LIMITS.unpackedMib);
    return await makeReady(directory, this.#core, name, (...asked) => this.#room.promiseDisk(...asked));
  }
}

/** Who asks for the same while it is being made shares the making. */
function shared<T>(running: Map<string, Promise<T>>, key: string, begin: () => Promise<T>): Promise<T> {
  const known = running.get(key);
  if (known) return known;
  const begun = begin();
  running.set(key, begun);
  const end = () => void running.delete(key);
  begun.then(end, end);
  return begun;
}
