import type { Stats } from 'node:fs';
import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Slots } from '@skerry/kit';
import { AppError, sha256Hex } from '@skerry/protocol';
import { lackOfRoom, promiseRoom } from '../../host/room.ts';
import { PROGRAM_LIMITS } from '../limits.ts';
import { type PromiseRoom, takenMib } from './images.ts';

/** Where things of a kind are, below the directory of all volumes. */
export type Kind = 'own' | 'files' | 'sandboxes' | 'mounts';
export const KINDS: readonly Kind[] = ['own', 'files', 'sandboxes', 'mounts'];

const MIB = 1024 * 1024;
const IMAGE = '.ext4';
const PLAIN = '.plain';
const OWNER = '.owner';
const OWNER_DIGITS = 16;

/** Names an owner in the name of a file, in whatever way its chain spells addresses. */
const markOf = (owner: string) => sha256Hex(owner).slice(0, OWNER_DIGITS);

/** A file of the network that is ready; its name is that of the file. */
export const isReadyFile = (name: string) => name.endsWith(IMAGE) || name.endsWith(PLAIN);

/** Something that takes room: on the disk, or promised to what is being made. */
interface Taken {
  readonly mark: string | undefined;
  readonly mib: number;
}

/** A file of the network on the disk. */
interface Kept {
  readonly path: string;
  readonly name: string;
  readonly usedMs: number;
  readonly mib: number;
}

interface Found {
  /** Volumes that belong to programs and sandboxes: they count with their whole size, which is promised. */
  readonly own: readonly Taken[];
  readonly files: readonly Kept[];
}

/** Who uses a file of the network; undefined where nobody does. */
type UsersOf = (name: string) => Pick<ReadonlySet<string>, 'has'> | undefined;

const sumOf = (list: readonly { readonly mib: number }[]) => list.reduce((sum, { mib }) => sum + mib, 0);

/** What an owner's volumes have, with the files that they use. Pure. */
const heldBy = ({ own, files }: Found, usersOf: UsersOf, mark: string): number =>
  sumOf(own.filter((one) => one.mark === mark)) + sumOf(files.filter(({ name }) => usersOf(name)?.has(mark)));

/**
 * Files of the network that have to go for so much: those that nobody uses, the longest unused first; undefined where all of them are
 * too few. Pure.
 */
function findUnused(files: readonly Kept[], usersOf: UsersOf, missingMib: number): Kept[] | undefined {
  let leftMib = missingMib;
  const unused = files.filter(({ name }) => !usersOf(name)).toSorted((a, b) => a.usedMs - b.usedMs);
  const going = unused.filter(({ mib }) => {
    const goes = leftMib > 0;
    if (goes) leftMib -= mib;
    return goes;
  });
  return leftMib > 0 ? undefined : going;
}

interface Listed {
  readonly path: string;
  readonly name: string;
  readonly stats: Stats;
}

async function listFiles(directory: string): Promise<Listed[]> {
  const names = await readdir(directory).catch(() => []);
  const listed = await Promise.all(
    names.map(async (name) => {
      const path = join(directory, name);
      const stats = await stat(path).catch(() => undefined);
      return stats?.isFile() ? [{ path, name, stats }] : [];
    }),
  );
  return listed.flat();
}

const wholeMib = ({ stats: { size } }: Listed) => Math.ceil(size / MIB);

/** The volumes of one program, and whose it is: an earlier release did not write that down. */
async function listOwn(directory: string): Promise<Taken[]> {
  const files = await listFiles(directory);
  const mark = files.find(({ name }) => name.endsWith(OWNER))?.name.slice(0, OWNER_DIGITS);
  return files.filter(({ name }) => name.endsWith(IMAGE)).map((one) => ({ mark, mib: wholeMib(one) }));
}

const takenBySandbox = (one: Listed): Taken => ({
  mark: one.name.split('.')[1],
  mib: one.name.endsWith(IMAGE) ? wholeMib(one) : 0,
});

const keptOf = ({ path, name, stats }: Listed): Kept => ({
  ...{ path, name: name.slice(0, name.lastIndexOf('.')), usedMs: stats.atimeMs },
  mib: takenMib(stats),
});

/** What the volumes in a directory, which outlive their sandboxes, and files of the network have written. */
export async function readTakenMib(directory: string): Promise<number> {
  const place = (kind: Kind, ...names: string[]) => join(directory, kind, ...names);
  const own = await readdir(place('own')).catch(() => []);
  const places = [place('files'), ...own.map((program) => place('own', program))];
  const listed = (await Promise.all(places.map(listFiles))).flat();
  return listed.reduce((sum, { stats }) => sum + takenMib(stats), 0);
}

/** The disk that volumes of programs have, an owner's share of it, and who uses which file of the network. */
export class Room {
  readonly #directory: string;
  readonly #limitMib: number;
  readonly #shareMib: number;
  /** What is being made. */
  readonly #promised = new Set<Taken>();
  /** By the name of a file of the network: who uses it, and how often. */
  readonly #users = new Map<string, Map<string, number>>();
  /** What is free and what is in use changes for one at a time. */
  readonly #turn = new Slots(1);

  constructor(directory: string, limitMib: number) {
    this.#directory = directory;
    this.#limitMib = limitMib;
    const { volumesShare, unpackedMib } = PROGRAM_LIMITS;
    // Where there is little, one file that may be unpacked still fits.
    this.#shareMib = Math.min(limitMib, Math.max(Math.floor(limitMib * volumesShare), unpackedMib));
  }

  place(kind: Kind, ...names: string[]): string {
    return join(this.#directory, kind, ...names);
  }

  /** What may be written beside what is there. Most own volumes take less than their size, which they may take. */
  async leftMib(): Promise<number> {
    return Math.max(0, this.#limitMib - (await readTakenMib(this.#directory)));
  }

  /** Where a volume is made that lives as long as its sandbox. */
  placeOfSandbox(owner: string, name: string): string {
    return this.place('sandboxes', `${name}.${markOf(owner)}${IMAGE}`);
  }

  /** Where a volume of a program is, or is made; it counts as its owner's. */
  async placeOfProgram(owner: string, program: string, name: string): Promise<string> {
    const directory = this.place('own', program);
    await mkdir(directory, { recursive: true, mode: 0o711 });
    await writeFile(join(directory, `${markOf(owner)}${OWNER}`), '');
    return join(directory, `${name}${IMAGE}`);
  }

  /**
   * Promises room for something until it is there, or is given up.
   * @throws AppError NO_RUNNER
   */
  promise(owner: string, needMib: number): Promise<Disposable> {
    const need = { mark: markOf(owner), mib: needMib };
    return this.#turn.run(async () => {
      const found = await this.#list();
      this.#checkShare(found, need);
      await this.#makeRoom(found, needMib);
      this.#promised.add(need);
      return { [Symbol.dispose]: () => void this.#promised.delete(need) };
    });
  }

  /**
   * Promises room on the disk itself, as `promiseRoom` does. Files that nobody uses go for it, where they are enough.
   * @throws AppError STORAGE_FULL
   */
  promiseDisk(...[path, bytes, what]: Parameters<PromiseRoom>): Promise<Disposable> {
    return this.#turn.run(async () => {
      const lackMib = (await lackOfRoom(dirname(path), bytes)) / MIB;
      if (lackMib > 0) await this.#erase((await this.#list()).files, lackMib);
      return promiseRoom(path, bytes, what);
    });
  }

  /**
   * A file of the network does not go while somebody uses it.
   * @param find how it is found, where it is ready
   * @throws AppError NO_RUNNER where it is more than what its user may have
   */
  use<T extends { readonly sizeMib: number }>(
    owner: string,
    name: string,
    find: () => Promise<T | undefined>,
  ): Promise<{ readonly found: T | undefined; readonly using: Disposable }> {
    const mark = markOf(owner);
    return this.#turn.run(async () => {
      const isUsed = this.#users.get(name)?.has(mark) === true;
      const found = await find();
      if (found && !isUsed) this.#checkShare(await this.#list(), { mark, mib: found.sizeMib });
      return { found, using: this.#addUser(name, mark) };
    });
  }

  readonly #usersOf: UsersOf = (name) => this.#users.get(name);

  #checkShare(found: Found, { mark, mib }: { readonly mark: string; readonly mib: number }): void {
    if (heldBy(found, this.#usersOf, mark) + mib > this.#shareMib)
      throw new AppError(
        'NO_RUNNER',
        `volumes of one owner, with the files that they use, may have ${this.#shareMib} MiB on this node`,
      );
  }

  async #makeRoom({ own, files }: Found, needMib: number): Promise<void> {
    const overMib = sumOf(own) + sumOf(files) + needMib - this.#limitMib;
    if (!(await this.#erase(files, overMib)))
      throw new AppError(
        'NO_RUNNER',
        `this node has ${this.#limitMib} MiB for volumes of programs, and too few are left`,
      );
  }

  /** Erases files that nobody uses, for so much. False: too few, and all of them stay. */
  async #erase(files: readonly Kept[], missingMib: number): Promise<boolean> {
    const going = findUnused(files, this.#usersOf, missingMib);
    for (const { path } of going ?? []) await rm(path, { force: true });
    return going !== undefined;
  }

  #addUser(name: string, mark: string): Disposable {
    const users = this.#users.get(name) ?? new Map<string, number>();
    this.#users.set(name, users);
    users.set(mark, (users.get(mark) ?? 0) + 1);
    let isUsed = true;
    return {
      [Symbol.dispose]: () => {
        if (!isUsed) return;
        isUsed = false;
        const left = users.get(mark)! - 1;
        if (left > 0) users.set(mark, left);
        else users.delete(mark);
        if (users.size === 0) this.#users.delete(name);
      },
    };
  }

  async #list(): Promise<Found> {
    const [files, sandboxes, programs] = await Promise.all([
      listFiles(this.place('files')),
      listFiles(this.place('sandboxes')),
      readdir(this.place('own')).catch(() => []),
    ]);
    const own = await Promise.all(programs.map((program) => listOwn(this.place('own', program))));
    return {
      own: [...this.#promised, ...own.flat(), ...sandboxes.map(takenBySandbox)],
      files: files.filter(({ name }) => isReadyFile(name)).map(keptOf),
    };
  }
}
