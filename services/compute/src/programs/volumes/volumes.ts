import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError, sha256Hex } from '@skerry/protocol';
import type { CidSource } from '../../files/cid-file.ts';
import { PROGRAM_LIMITS } from '../limits.ts';
import type { Mount } from '../sandbox/command-line.ts';
import type { AskedVolume } from './asked.ts';
import { listMounts, makeImage, makeReady, mountImage, unmount } from './images.ts';

export interface VolumesOptions {
  readonly core: CidSource;
  /** Below the data directory. */
  readonly directory: string;
  /** What all volumes may have together. */
  readonly limitMib: number;
}

/** What a sandbox of a program is started with, until it has ended. */
export interface Attached {
  readonly mounts: readonly Mount[];
  /** Who the program is: what it wrote belongs to it in its next sandbox, too. */
  readonly uid: number;
  detach(): Promise<void>;
}

/** Users of programs with volumes, below those of other sandboxes: a program is the same one each time. */
const UID_BASE = 0x50000000;
const UID_DIGITS = 7;
const MIB = 1024 * 1024;

const uidOf = (program: string) => UID_BASE + Number.parseInt(sha256Hex(program).slice(0, UID_DIGITS), 16);

/** Volumes of the programs of this node. */
export class Volumes {
  readonly #options: VolumesOptions;
  /** What is mounted, by image, and how many sandboxes use it. */
  readonly #mounted = new Map<string, { readonly directory: string; users: number }>();
  /** One after the other: two sandboxes may want the same. */
  #line: Promise<unknown> = Promise.resolve();

  constructor(options: VolumesOptions) {
    this.#options = options;
  }

  #place(kind: 'own' | 'files' | 'sandboxes' | 'mounts', ...names: string[]): string {
    return join(this.#options.directory, kind, ...names);
  }

  /** Lets go of what an earlier process had mounted, and of what lived as long as its sandboxes. */
  async clear(): Promise<void> {
    for (const path of await listMounts(this.#options.directory)) await unmount(path);
    for (const kind of ['sandboxes', 'mounts'] as const)
      await rm(this.#place(kind), { recursive: true, force: true });
    for (const kind of ['own', 'files', 'sandboxes', 'mounts'] as const)
      await mkdir(this.#place(kind), { recursive: true, mode: 0o711 });
  }

  /** Programs that have volumes here. */
  async listPrograms(): Promise<string[]> {
    return readdir(this.#place('own')).catch(() => []);
  }

  /** Erases what belongs to a program, where nothing of it runs. */
  erase(program: string): Promise<void> {
    return this.#inTurn(async () => {
      const directory = this.#place('own', program);
      const isUsed = [...this.#mounted.keys()].some((path) => path.startsWith(`${directory}/`));
      if (!isUsed) await rm(directory, { recursive: true, force: true });
    });
  }

  /**
   * Makes a program's volumes ready for one sandbox.
   *
   * @throws AppError NO_RUNNER where this node has no room for them, and what a file may not be had for
   */
  attach(program: string, volumes: readonly AskedVolume[]): Promise<Attached> {
    return this.#inTurn(async () => {
      const used: string[] = [];
      const detach = () => this.#inTurn(() => this.#letGo(used));
      try {
        const mounts: Mount[] = [];
        for (const volume of volumes) mounts.push(await this.#attachOne(program, volume, used));
        return { mounts, uid: uidOf(program), detach };
      } catch (error) {
        await this.#letGo(used);
        throw error;
      }
    });
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#line.then(work);
    this.#line = done.catch(() => {});
    return done;
  }

  async #attachOne(program: string, volume: AskedVolume, used: string[]): Promise<Mount> {
    const { mount: to } = volume;
    if (volume.kind === 'file') {
      await this.#makeRoom(PROGRAM_LIMITS.unpackedMib);
      const { kind, path } = await makeReady(this.#place('files'), this.#options.core, volume.file);
      if (kind === 'plain') return { from: path, to };
      return { from: join(await this.#mount(path, true, used), 'root'), to };
    }
    const { name, sizeMib } = volume;
    const directory = name === null ? this.#place('sandboxes') : this.#place('own', program);
    const path = join(directory, `${name === null ? randomUUID() : sha256Hex(name)}.ext4`);
    if (!(await stat(path).catch(() => undefined))) {
      await this.#makeRoom(sizeMib);
      await mkdir(directory, { recursive: true, mode: 0o711 });
      await makeImage(path, sizeMib, uidOf(program));
    }
    return { from: await this.#mount(path, false, used), to, isWritable: true, sizeMib };
  }

  async #mount(path: string, isReadOnly: boolean, used: string[]): Promise<string> {
    let mounted = this.#mounted.get(path);
    if (!mounted) {
      mounted = { directory: this.#place('mounts', randomUUID()), users: 0 };
      await mountImage(path, mounted.directory, isReadOnly);
      this.#mounted.set(path, mounted);
    }
    mounted.users++;
    used.push(path);
    return mounted.directory;
  }

  async #letGo(used: string[]): Promise<void> {
    for (const path of used.splice(0)) {
      const mounted = this.#mounted.get(path);
      if (!mounted || --mounted.users > 0) continue;
      this.#mounted.delete(path);
      await unmount(mounted.directory);
      if (path.startsWith(`${this.#place('sandboxes')}/`)) await rm(path, { force: true });
    }
  }

  /** Own volumes are promised whole; of files of the network, those go that nobody uses. */
  async #makeRoom(needMib: number): Promise<void> {
    const { limitMib } = this.#options;
    let freeMib = limitMib - needMib;
    for (const kind of ['own', 'sandboxes'] as const)
      for (const { sizeMib } of await this.#listFiles(this.#place(kind))) freeMib -= sizeMib;
    const files = await this.#listFiles(this.#place('files'));
    for (const { takenMib } of files) freeMib -= takenMib;
    for (const { path, takenMib } of files.toSorted((a, b) => a.usedMs - b.usedMs)) {
      if (freeMib >= 0) return;
      if (this.#mounted.has(path)) continue;
      await rm(path, { force: true });
      freeMib += takenMib;
    }
    if (freeMib < 0)
      throw new AppError(
        'NO_RUNNER',
        `this node has ${limitMib} MiB for volumes of programs, and too few are left`,
      );
  }

  async #listFiles(directory: string) {
    const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => []);
    const files = entries
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name));
    return Promise.all(
      files.map(async (path) => {
        const { size, blocks, atimeMs: usedMs } = await stat(path);
        return { path, usedMs, sizeMib: Math.ceil(size / MIB), takenMib: Math.ceil((blocks * 512) / MIB) };
      }),
    );
  }
}
