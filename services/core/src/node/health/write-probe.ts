import { randomUUID } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { DiskReserve } from '@skerry/database';
import { type Logger, runLoop, systemCodeOf, within } from '@skerry/kit';
import { DamagedBlobs } from '../../store/files/disk/damaged.ts';
import { type FilesDisk, LACKS } from '../../store/files/disk/files-disk.ts';
import { isFull } from '../../store/files/storage-error.ts';

/** Each look costs the disk a sync. */
const PROBE_MS = 5_000;
/** A write of one byte that takes so long has met a disk that hangs, however busy it is otherwise. */
const HANG_MS = 20_000;

const LATE = Symbol('late');

export interface WriteProbeOptions {
  /** Where files come. Each has to be there. */
  readonly directories: readonly string[];
  /** That a disk is full is the reserve's to tell, where it sees it. */
  readonly reserve: Pick<DiskReserve, 'hasRoom'>;
  /** That of the files, where they are in one of the directories: told whether it hangs, and looked at whether it is there. */
  readonly disk?: FilesDisk | undefined;
  readonly log: Logger;
  /** HANG_MS by default. */
  readonly hangMs?: number;
}

/** Writes a file there, has it on the disk, and removes it. */
async function tryToWrite(directory: string): Promise<void> {
  const path = join(directory, `.probe-${randomUUID()}`);
  try {
    const file = await open(path, 'wx', 0o600);
    try {
      await file.writeFile('.');
      await file.sync();
    } finally {
      await file.close();
    }
  } finally {
    await rm(path, { force: true });
  }
}

/** The system's code and where. A disk whose free space is enough can be full all the same. Pure. */
const reasonOf = (code: string, isFull: boolean, directory: string) =>
  `${code} in ${directory}${isFull ? ', whose disk has space: inodes or a quota are used up' : ''}`;

interface Found {
  readonly reason: string;
  readonly err?: unknown;
}

/**
 * Whether files can be written, found out by writing one: of a disk that failed and was made read-only for that, has no inode left, or
 * never answers, neither the free space nor the mount nor access(2) says so.
 */
export class WriteProbe {
  readonly #options: WriteProbeOptions;
  #failure: string | undefined;
  #damaged = 0;
  /** A write that has not returned. Nothing else is tried until it does: each has a thread of the process. */
  #hanging: Found | undefined;

  constructor(options: WriteProbeOptions) {
    this.#options = options;
  }

  /** Why files cannot be written, in words: the system's code and where, or that writes do not return; undefined where they can. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** Why files can be neither read nor written, in words: their disk is not there. */
  get absence(): string | undefined {
    return this.#options.disk?.absence;
  }

  /** Files that were found damaged and have not come again: each process counts what the one that leads puts aside. */
  get damaged(): number {
    return this.#damaged;
  }

  /** Resolves in time, whatever the disk does. */
  async look(): Promise<void> {
    const { directories, disk, log } = this.#options;
    const had = this.#failure;
    let found = this.#hanging;
    for (const directory of directories) {
      if (this.#hanging) break;
      found = (await this.#try(directory)) ?? found;
    }
    this.#failure = found?.reason;
    if (disk) disk.hang = this.#hanging?.reason;
    if (found && found.reason !== had)
      log.error(
        { err: found.err, reason: found.reason },
        'files cannot be written: uploads are refused; reads and messages continue',
      );
    if (had !== undefined && !found) log.info('files can be written again');
  }

  async #try(directory: string): Promise<Found | undefined> {
    const { hangMs = HANG_MS } = this.#options;
    const trying = this.#findFailure(directory);
    const found = await within(hangMs, trying, LATE);
    if (found !== LATE) return found;
    this.#hanging = {
      reason: `a write in ${directory} has not returned for ${Math.round(hangMs / 1_000)} s`,
    };
    void trying.then(() => {
      this.#hanging = undefined;
    });
    return this.#hanging;
  }

  async #countDamaged(directory: string): Promise<void> {
    try {
      this.#damaged = (await new DamagedBlobs(directory).list()).length;
    } catch (err) {
      // Files may come all the same.
      this.#options.log.debug({ err }, 'damaged files could not be counted');
    }
  }

  async #findFailure(directory: string): Promise<Found | undefined> {
    const { reserve, disk } = this.#options;
    try {
      const isOfFiles = directory === disk?.directory;
      if (isOfFiles) await disk.look();
      // In a directory that is not the node's nothing is written.
      if (isOfFiles && disk.absence !== undefined) return undefined;
      if (isOfFiles) await this.#countDamaged(directory);
      await tryToWrite(directory);
      return undefined;
    } catch (err) {
      const code = systemCodeOf(err) ?? 'unknown error';
      if (LACKS.has(code) || (isFull(err) && !reserve.hasRoom)) return undefined;
      return { reason: reasonOf(code, isFull(err), directory), err };
    }
  }

  /** Looks again and again until the signal ends. */
  async run(signal: AbortSignal): Promise<void> {
    const { log } = this.#options;
    await runLoop({ name: 'write probe', intervalMs: PROBE_MS, signal, log }, () => this.look());
  }
}
