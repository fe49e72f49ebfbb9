import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissing } from '@skerry/kit';
import { AppError, sha256Hex } from '@skerry/protocol';
import type { CidSource } from '../../files/cid-file.ts';
import { isDiskFull } from '../../host/disk-full.ts';
import type { Mount } from '../sandbox/command-line.ts';
import type { AskedVolume } from './asked.ts';
import { A_VOLUME, listMounts, makeImage, mountImage, removePlace, unmount } from './images.ts';
import { ReadyFiles, type UsedFile } from './ready-files.ts';
import { KINDS, Room } from './room.ts';

export interface VolumesOptions {
  readonly core: CidSource;
  /** Below the data directory. */
  readonly directory: string;
  /** What all volumes may have together. */
  readonly limitMib: number;
}

/** A program, and the volumes that its message asks for. */
export interface Asking {
  readonly hash: string;
  readonly owner: string;
  readonly volumes: readonly AskedVolume[];
}

/** Volumes that a sandbox can be started with at once: their files are here, and stay until they are let go of. */
export interface Prepared extends Disposable {
  /** @throws AppError NO_RUNNER where this node has no room for a program's own ones */
  attach(): Promise<Attached>;
}

/** What a sandbox of a program is started with, until it has ended. */
export interface Attached {
  readonly mounts: readonly Mount[];
  /** Who the program is: what it wrote belongs to it in its next sandbox, too. */
  readonly uid: number;
  detach(): Promise<void>;
  /** The same where no sandbox was started with them: what was made for it goes, since it would keep others from having theirs. */
  discard(): Promise<void>;
}

/** Users of programs with volumes, below those of other sandboxes: a program is the same one each time. */
const UID_BASE = 0x50000000;
const UID_DIGITS = 7;

const uidOf = (program: string) => UID_BASE + Number.parseInt(sha256Hex(program).slice(0, UID_DIGITS), 16);

/** Throws where nobody can say: another one would take its place. */
const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    (error: unknown) => {
      if (isMissing(error)) return false;
      throw error;
    },
  );

/** Whose disk is full runs no program that needs room on it: another node does. */
const orElsewhere = <T>(work: Promise<T>): Promise<T> =>
  work.catch((error: unknown) => {
    if (!isDiskFull(error)) throw error;
    throw new AppError('NO_RUNNER', "this node's disk is full", { cause: error });
  });

/** Volumes of the programs of this node. */
export class Volumes {
  readonly #directory: string;
  readonly #room: Room;
  readonly #files: ReadyFiles;
  /** What is mounted, by image, and how many sandboxes use it. */
  readonly #mounted = new Map<string, { readonly directory: string; users: number }>();
  /** Images that were made for a sandbox which is not started yet, and that no other one was attached to. */
  readonly #unused = new Set<string>();
  /** One after the other: two sandboxes may want the same. Nothing in it takes long. */
  #line: Promise<unknown> = Promise.resolve();

  constructor({ core, directory, limitMib }: VolumesOptions) {
    this.#directory = directory;
    this.#room = new Room(directory, limitMib);
    this.#files = new ReadyFiles(core, this.#room);
  }

  /** Lets go of what an earlier process had mounted or began, and of what lived as long as its sandboxes. */
  async clear(): Promise<void> {
    // The last one first: those below another one go with that.
    for (const path of (await listMounts(this.#directory)).toReversed()) await unmount(path);
    const mounts = this.#room.place('mounts');
    for (const name of await readdir(mounts).catch(() => [])) await removePlace(join(mounts, name));
    await rm(this.#room.place('sandboxes'), { recursive: true, force: true });
    await this.#files.clear();
    for (const kind of KINDS) await mkdir(this.#room.place(kind), { recursive: true, mode: 0o711 });
  }

  /** What they may take of the disk beside what they have. */
  leftMib(): Promise<number> {
    return this.#room.leftMib();
  }

  /** Programs that have volumes here. */
  async listPrograms(): Promise<string[]> {
    return readdir(this.#room.place('own')).catch(() => []);
  }

  /** Erases what belongs to a program, where nothing of it runs. */
  erase(program: string): Promise<void> {
    return this.#inTurn(async () => {
      const directory = this.#room.place('own', program);
      const isUsed = [...this.#mounted.keys()].some((path) => path.startsWith(`${directory}/`));
      if (!isUsed) await rm(directory, { recursive: true, force: true });
    });
  }

  /**
   * Makes the files of a program's volumes ready.
   *
   * @throws AppError NO_RUNNER where this node has no room for them, and what ReadyFiles.use throws
   */
  async prepare(asking: Asking): Promise<Prepared> {
    const files = await orElsewhere(this.#useFiles(asking));
    return {
      attach: () => orElsewhere(this.#attach(asking)),
      [Symbol.dispose]: () => files[Symbol.dispose](),
    };
  }

  async #useFiles({ owner, volumes }: Asking): Promise<DisposableStack> {
    using used = new DisposableStack();
    for (const volume of volumes)
      if (volume.kind === 'file') used.use(await this.#files.use(owner, volume.file));
    return used.move();
  }

  /** Makes a program's volumes ready for one sandbox. Where one cannot be had, none is left of those that were made for it. */
  #attach(asking: Asking): Promise<Attached> {
    return this.#inTurn(async () => {
      await using used = new AsyncDisposableStack();
      const made: string[] = [];
      used.defer(() => this.#discard(made));
      const mounts: Mount[] = [];
      for (const volume of asking.volumes) mounts.push(await this.#attachOne(asking, volume, used, made));
      const held = used.move();
      const end = () => this.#inTurn(() => held.disposeAsync());
      const detach = () => {
        for (const path of made) this.#unused.delete(path);
        return end();
      };
      return { mounts, uid: uidOf(asking.hash), detach, discard: end };
    });
  }

  async #discard(made: readonly string[]): Promise<void> {
    for (const path of made) if (this.#unused.delete(path)) await rm(path, { force: true });
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#line.then(work);
    this.#line = done.catch(() => {});
    return done;
  }

  async #attachOne(
    asking: Asking,
    volume: AskedVolume,
    used: AsyncDisposableStack,
    made: string[],
  ): Promise<Mount> {
    const { mount: to } = volume;
    if (volume.kind === 'file') {
      const { kind, path }: UsedFile = used.use(await this.#files.use(asking.owner, volume.file));
      if (kind === 'plain') return { from: path, to };
      return { from: join(await this.#mount(path, true, used), 'root'), to };
    }
    const { sizeMib } = volume;
    const path = await this.#makeOwn(asking, volume, used, made);
    return { from: await this.#mount(path, false, used), to, isWritable: true, sizeMib };
  }

  /** Where an own volume is, made where it is not there yet. */
  async #makeOwn(
    { hash, owner }: Asking,
    { name, sizeMib }: Extract<AskedVolume, { kind: 'own' }>,
    used: AsyncDisposableStack,
    made: string[],
  ): Promise<string> {
    const path =
      name === null
        ? this.#room.placeOfSandbox(owner, randomUUID())
        : await this.#room.placeOfProgram(owner, hash, sha256Hex(name));
    if (name === null) used.defer(() => rm(path, { force: true }));
    if (await isThere(path)) {
      this.#unused.delete(path);
      return path;
    }
    using _promised = await this.#room.promise(owner, sizeMib);
    // An empty image takes nothing: it is the reserve alone that files which nobody uses go for.
    using _disk = await this.#room.promiseDisk(path, 0, A_VOLUME);
    await makeImage(path, sizeMib, uidOf(hash));
    made.push(path);
    this.#unused.add(path);
    return path;
  }

  async #mount(path: string, isReadOnly: boolean, used: AsyncDisposableStack): Promise<string> {
    let mounted = this.#mounted.get(path);
    if (!mounted) {
      mounted = { directory: this.#room.place('mounts', randomUUID()), users: 0 };
      await mountImage(path, mounted.directory, isReadOnly);
      this.#mounted.set(path, mounted);
    }
    mounted.users++;
    used.defer(() => this.#unmount(path));
    return mounted.directory;
  }

  async #unmount(path: string): Promise<void> {
    const mounted = this.#mounted.get(path);
    if (!mounted || --mounted.users > 0) return;
    this.#mounted.delete(path);
    await unmount(mounted.directory);
  }
}
