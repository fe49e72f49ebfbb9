import { randomUUID } from 'node:crypto';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { Failures, type Logger } from '@skerry/kit';

/** Told in steps of this, so that a file is not written for each piece of another that comes. */
const STEP_BYTES = 16 * 1024 ** 2;
/** What nobody has renewed for so long is of a process that ended, or is frozen. A process renews its own twice a second. */
const VALID_MS = 10_000;
/** Then it is removed. */
const LEFT_MS = 60_000;
const SUFFIX = '.json';

type Device = number | undefined;

/**
 * What the processes that write to the same disks keep there for what is still to come (reserve.ts): each counted its own alone, and
 * together they took more than there was.
 */
export interface SharedHolds extends Disposable {
  /** Tells the others what this process keeps, in bytes by device. It stays told while it is renewed. */
  tell(kept: ReadonlyMap<Device, number>): void;
  /** What the others keep on a device, in bytes. */
  othersOn(device: Device): number;
  renew(): void;
}

/** What is told: bytes by device, none without any. Pure. */
const spell = (kept: ReadonlyMap<Device, number>): string =>
  JSON.stringify(
    Object.fromEntries(
      [...kept]
        .filter(([, bytes]) => bytes > 0)
        .map(([device, bytes]) => [String(device), Math.ceil(bytes / STEP_BYTES) * STEP_BYTES]),
    ),
  );

const NOTHING = spell(new Map());

/** A file for each process, in a directory that all of them share. Nothing of it outlasts them, and nothing has to reach the disk. */
class HoldFiles implements SharedHolds {
  readonly #directory: string;
  readonly #own = `${randomUUID()}${SUFFIX}`;
  readonly #failures: Failures;
  #told = NOTHING;

  constructor(directory: string, log: Logger) {
    this.#directory = directory;
    this.#failures = new Failures({ log, what: 'room that processes keep on the disk could not be told' });
    mkdirSync(directory, { recursive: true });
  }

  tell(kept: ReadonlyMap<Device, number>): void {
    const text = spell(kept);
    if (text !== this.#told) this.#write(text);
  }

  othersOn(device: Device): number {
    return this.#try(() => {
      let sum = 0;
      for (const [name, ageMs] of this.#listOthers())
        if (ageMs <= VALID_MS) sum += Number(this.#read(name)[String(device)] ?? 0);
      return sum;
    }, 0);
  }

  renew(): void {
    this.#try(() => {
      for (const [name, ageMs] of this.#listOthers())
        if (ageMs > LEFT_MS) rmSync(join(this.#directory, name), { force: true });
      if (this.#told === NOTHING) return;
      const now = Date.now() / 1_000;
      try {
        utimesSync(join(this.#directory, this.#own), now, now);
      } catch {
        // Others removed it while this process was frozen.
        this.#write(this.#told);
      }
    }, undefined);
  }

  [Symbol.dispose](): void {
    this.#write(NOTHING);
  }

  #write(text: string): void {
    const path = join(this.#directory, this.#own);
    this.#told = text;
    this.#try(() => {
      if (text === NOTHING) return rmSync(path, { force: true });
      // Whoever reads sees one or the other, and no half.
      writeFileSync(`${path}.new`, text);
      renameSync(`${path}.new`, path);
    }, undefined);
  }

  /** Names and ages, in milliseconds; a time ahead of now counts as its distance, since the clock was set back. */
  #listOthers(): [string, number][] {
    const now = Date.now();
    return readdirSync(this.#directory).flatMap((name): [string, number][] => {
      if (name.startsWith(this.#own)) return [];
      const file = statSync(join(this.#directory, name), { throwIfNoEntry: false });
      return file ? [[name, Math.abs(now - file.mtimeMs)]] : [];
    });
  }

  #read(name: string): Record<string, unknown> {
    if (!name.endsWith(SUFFIX)) return {};
    try {
      return JSON.parse(readFileSync(join(this.#directory, name), 'utf8'));
    } catch (error) {
      // It ended between two looks.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
      throw error;
    }
  }

  /** Where the directory fails, each process counts for itself: that is no reason to take nothing. */
  #try<T>(act: () => T, otherwise: T): T {
    try {
      const value = act();
      this.#failures.clear();
      return value;
    } catch (error) {
      this.#failures.note(error);
      return otherwise;
    }
  }
}

/** @param directory of the node's processes on this machine alone; made where it is not there */
export const openSharedHolds = (directory: string, log: Logger): SharedHolds => new HoldFiles(directory, log);
