import { randomUUID } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { DiskReserve } from '@skerry/database';
import { type Logger, runLoop } from '@skerry/kit';
import { isFull } from '../../store/files/storage-error.ts';

/** Each look costs the disk a sync. */
const PROBE_MS = 5_000;
/** What the process lacks, not the disk. */
const LACKS: ReadonlySet<unknown> = new Set(['EMFILE', 'ENFILE', 'ENOMEM']);

export interface WriteProbeOptions {
  /** Where files come. Each has to be there. */
  readonly directories: readonly string[];
  /** That a disk is full is the reserve's to tell, where it sees it. */
  readonly reserve: Pick<DiskReserve, 'hasRoom'>;
  readonly log: Logger;
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

/**
 * Whether files can be written, found out by writing one: of a disk that failed and was made read-only for that, or has no inode left,
 * neither the free space nor the mount nor access(2) says so.
 */
export class WriteProbe {
  readonly #options: WriteProbeOptions;
  #failure: string | undefined;

  constructor(options: WriteProbeOptions) {
    this.#options = options;
  }

  /** Why files cannot be written, in words: the system's code and where; undefined where they can. */
  get failure(): string | undefined {
    return this.#failure;
  }

  async look(): Promise<void> {
    const { directories, reserve, log } = this.#options;
    const had = this.#failure;
    let found: { readonly reason: string; readonly err: unknown } | undefined;
    for (const directory of directories) {
      try {
        await tryToWrite(directory);
      } catch (err) {
        const { code = 'unknown error' } = err as NodeJS.ErrnoException;
        if (LACKS.has(code) || (isFull(err) && !reserve.hasRoom)) continue;
        found ??= { reason: reasonOf(code, isFull(err), directory), err };
      }
    }
    this.#failure = found?.reason;
    if (found && found.reason !== had)
      log.error(
        { err: found.err },
        'files cannot be written: uploads are refused; reads and messages continue',
      );
    if (had !== undefined && !found) log.info('files can be written again');
  }

  /** Looks again and again until the signal ends. */
  async run(signal: AbortSignal): Promise<void> {
    const { log } = this.#options;
    await runLoop({ name: 'write probe', intervalMs: PROBE_MS, signal, log }, () => this.look());
  }
}
