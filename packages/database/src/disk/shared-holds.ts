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
/** Under the second name it is written. */
const OF_HOLDS = /\.json(\.new)?$/;

type Device = number | undefined;

/**
 * What the processes that write to the same disks keep there for what is still to come (reserve.ts): each counted its own alone, and
 * together they took more than there was.
 */
export interface SharedHolds extends Disposable {
  /** Tells the others what this process keeps, in bytes by device. It stays told while it is renewed. */
  tell(kept: ReadonlyMap<Device, number>): void;
  /**
   * What the others keep on a device, in bytes.
   * @param ageMaxMs how long ago that may have been read; now where left out, as whoever begins something has to
   */
  othersOn(device: Device, ageMaxMs?: number): number;
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

/** Bytes that a file tells of a device; 0 where it tells none. Pure. */
function bytesIn(told: unknown, device: Device): number {
  const bytes = (told as Readonly<Record<string, unknown>> | null | undefined)?.[String(device)];
  return typeof bytes === 'number' ? bytes : 0;
}

/** A file for each process, in a directory that all of them share. Nothing of it outlasts them, and nothing has to reach the disk. */
class HoldFiles implements SharedHolds {
  readonly #directory: string;
  readonly #own = `${randomUUID()}${SUFFIX}`;
  readonly #telling: Failures;
  readonly #hearing: Failures;
  #kept = NOTHING;
  /** What was read of the others last, by device. */
  readonly #heard = new Map<Device, { readonly bytes: number; readonly atMs: number }>();
  /** What the file says; undefined where that is not known. */
  #told: string | undefined = NOTHING;

  constructor(directory: string, log: Logger) {
    this.#directory = directory;
    this.#telling = new Failures({
      log,
      what: 'room that this process keeps on the disk could not be told to others',
    });
    this.#hearing = new Failures({
      log,
      what: 'room that other processes keep on the disk could not be read',
    });
    mkdirSync(directory, { recursive: true });
  }

  tell(kept: ReadonlyMap<Device, number>): void {
    this.#kept = spell(kept);
    if (this.#kept !== this.#told) this.#write();
  }

  othersOn(device: Device, ageMaxMs = 0): number {
    const nowMs = performance.now();
    const heard = this.#heard.get(device);
    if (heard && nowMs - heard.atMs < ageMaxMs) return heard.bytes;
    const bytes = this.#readOthers(device);
    this.#heard.set(device, { bytes, atMs: nowMs });
    return bytes;
  }

  #readOthers(device: Device): number {
    let sum = 0;
    this.#try(this.#hearing, () => {
      for (const [name, ageMs] of this.#listOthers())
        if (ageMs <= VALID_MS && name.endsWith(SUFFIX)) sum += bytesIn(this.#read(name), device);
    });
    return sum;
  }

  renew(): void {
    if (!this.#renewOwn()) this.#write();
    this.#try(this.#hearing, () => {
      for (const [name, ageMs] of this.#listOthers())
        if (ageMs > LEFT_MS) rmSync(join(this.#directory, name), { force: true });
    });
  }

  [Symbol.dispose](): void {
    this.#kept = NOTHING;
    this.#write();
  }

  /** @returns whether what is told is valid for longer now */
  #renewOwn(): boolean {
    if (this.#kept !== this.#told) return false;
    if (this.#told === NOTHING) return true;
    const now = Date.now() / 1_000;
    try {
      utimesSync(join(this.#directory, this.#own), now, now);
      return true;
    } catch {
      // Others removed it while this process was frozen.
      return false;
    }
  }

  #write(): void {
    const path = join(this.#directory, this.#own);
    const text = this.#kept;
    this.#told = undefined;
    this.#try(this.#telling, () => {
      // Whoever reads sees one or the other, and no half.
      if (text !== NOTHING) {
        writeFileSync(`${path}.new`, text);
        renameSync(`${path}.new`, path);
      } else rmSync(path, { force: true });
      this.#told = text;
    });
  }

  /** Names and ages, in milliseconds; a time ahead of now counts as its distance, since the clock was set back. */
  #listOthers(): [string, number][] {
    const now = Date.now();
    return readdirSync(this.#directory).flatMap((name): [string, number][] => {
      if (name.startsWith(this.#own) || !OF_HOLDS.test(name)) return [];
      const file = statSync(join(this.#directory, name), { throwIfNoEntry: false });
      return file ? [[name, Math.abs(now - file.mtimeMs)]] : [];
    });
  }

  /** What is no JSON was cut off where the machine failed: it says nothing, and hides nothing that others say. */
  #read(name: string): unknown {
    try {
      return JSON.parse(readFileSync(join(this.#directory, name), 'utf8'));
    } catch (error) {
      // It ended between two looks.
      const isGone = (error as NodeJS.ErrnoException).code === 'ENOENT';
      if (isGone || error instanceof SyntaxError) return undefined;
      throw error;
    }
  }

  /** Where the directory fails, each process counts for itself: that is no reason to take nothing. */
  #try(failures: Failures, act: () => void): void {
    try {
      act();
      failures.clear();
    } catch (error) {
      failures.note(error);
    }
  }
}

/** @param directory of the node's processes on this machine alone; made where it is not there */
export const openSharedHolds = (directory: string, log: Logger): SharedHolds => new HoldFiles(directory, log);
