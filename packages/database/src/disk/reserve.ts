import { stat, statfs } from 'node:fs/promises';
import { sep } from 'node:path';
import { isMissing, type Logger, runLoop } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { type DiskFacts, decideReserveBytes, holdFloorBytes, mayWrite, mibOf } from './disk-sizes.ts';
import type { SharedHolds } from './shared-holds.ts';

/** Between two looks what is written is counted, so that a fast writer does not outrun them. */
const LOOK_MS = 500;

interface DiskSize {
  readonly freeBytes: number;
  readonly sizeBytes: number;
  /** Directories with the same number share their room. */
  readonly device?: number;
}

export type MeasureDisk = (directory: string) => Promise<DiskSize>;

const measureDisk: MeasureDisk = async (directory) => {
  const [{ bavail, blocks, bsize }, { dev: device }] = await Promise.all([
    statfs(directory),
    stat(directory),
  ]);
  return { freeBytes: bavail * bsize, sizeBytes: blocks * bsize, device };
};

interface Disk extends DiskFacts {
  readonly directory: string;
  readonly device: number | undefined;
}

const isWithin = (directory: string, around: string) => `${directory}${sep}`.startsWith(`${around}${sep}`);

export interface ReserveOptions {
  /** In MiB; 0: as the disk's size asks for. */
  readonly setMib: number;
  readonly log: Logger;
  readonly measure?: MeasureDisk;
  /** With the other processes of the node that write to these disks; left out where there are none. */
  readonly shared?: SharedHolds | undefined;
}

/** What others may ask of the reserve. */
export interface DiskReserve {
  /** Whether something new may be written. */
  readonly hasRoom: boolean;
  /** The disk with the least room above its reserve; null before the first look. */
  readonly facts: DiskFacts | null;
  /** Throws STORAGE_FULL where nothing new may be written. @param bytes about to be written */
  take(bytes?: number): void;
  /**
   * Room for something before its first byte, if it is large. Throws STORAGE_FULL where all of it does not fit: that refuses nothing else. As much as
   * has come of it, and 64 MiB more, is kept from whatever else asks in this way: who announces much has nothing of it.
   * @param bytes undefined where that is not known: then it ends where the room does, once it turns out to be large
   * @param directory where it will be
   */
  hold(bytes: number | undefined, directory: string): Hold;
  /** Bytes that the disk of a directory lacks until something large may come; 0 where it lacks none. */
  lackBytes(directory: string): number;
}

/** Room that is kept until it is disposed of. Both throw STORAGE_FULL where the room that it may keep now is another's. */
export interface Hold extends Disposable {
  /** So much of it is on the disk now. */
  use(bytes: number): void;
  /** So much has come, which will be here, too. */
  expect(bytes: number): void;
}

/** What is smaller asks for its room as it is written. */
const LARGE_BYTES = 8 * 1024 ** 2;

/** What is large keeps this much for what comes next. */
const AHEAD_BYTES = 64 * 1024 ** 2;

/**
 * How long ago what others keep may have been read where something goes on that keeps room already: with eight processes a look at each
 * piece of 64 KiB took 1.2 s of the processor for a GiB. What others began meanwhile looked at what is kept here.
 */
const OTHERS_AGE_MAX_MS = 100;

const NO_HOLD: Hold = { use: () => {}, expect: () => {}, [Symbol.dispose]: () => {} };

/** For parts that run without a disk of their own, such as tests. */
export const BOUNDLESS: DiskReserve = {
  ...{ hasRoom: true, facts: null },
  take: () => {},
  hold: () => NO_HOLD,
  lackBytes: () => 0,
};

/**
 * Room that the node leaves free where its database and its files are: PostgreSQL cannot go on when its log does not
 * fit, nor recover. Below it everything that writes something new is refused or waits; reading goes on.
 */
export class Reserve implements DiskReserve {
  readonly #options: ReserveOptions;
  readonly #directories: string[] = [];
  #disks: Disk[] = [];
  #takenBytes = 0;
  /** What was taken between the last two looks: another process may have measured before that was written. */
  #takenBefore = 0;
  /** By the device that it is on. */
  readonly #heldBytes = new Map<number | undefined, number>();
  #hasRoom = true;

  constructor(options: ReserveOptions) {
    this.#options = options;
  }

  get hasRoom(): boolean {
    return this.#hasRoom;
  }

  get facts(): DiskFacts | null {
    return this.#tightest ?? null;
  }

  get #tightest(): Disk | undefined {
    const above = ({ freeBytes, reserveBytes }: DiskFacts) => freeBytes - reserveBytes;
    return this.#disks.toSorted((a, b) => above(a) - above(b))[0];
  }

  /** The file system of this directory is looked at from now on. */
  async watch(directory: string): Promise<void> {
    this.#directories.push(directory);
    await this.look();
  }

  take(bytes = 0): void {
    this.#takenBytes += bytes;
    if (this.#hasRoom) this.#decide();
    if (this.#hasRoom) return;
    const reserveMib = mibOf(this.facts?.reserveBytes ?? 0);
    throw new AppError(
      'STORAGE_FULL',
      `the node keeps ${reserveMib} MiB of its disk free and refuses writes until there is more; reads continue`,
    );
  }

  hold(bytes: number | undefined, directory: string): Hold {
    const disk = this.#diskOf(directory);
    if ((bytes !== undefined && bytes < LARGE_BYTES) || !disk) return NO_HOLD;
    return bytes === undefined ? this.#holdUnknown(directory) : this.#holdKnown(bytes, directory);
  }

  #holdKnown(bytes: number, directory: string): Hold {
    const keeping = this.#keepOn(directory);
    keeping.keep(Math.min(bytes, AHEAD_BYTES), bytes);
    let [leftBytes, aheadBytes] = [bytes, AHEAD_BYTES];
    const change = (used: number, come: number) => {
      leftBytes = Math.max(0, leftBytes - used);
      aheadBytes += come;
      keeping.keep(Math.min(leftBytes, aheadBytes));
    };
    return {
      use: (used) => change(used, used),
      expect: (come) => change(0, come),
      [Symbol.dispose]: keeping.end,
    };
  }

  #holdUnknown(directory: string): Hold {
    const keeping = this.#keepOn(directory);
    let comeBytes = 0;
    const come = (more: number) => {
      comeBytes += more;
      if (comeBytes > LARGE_BYTES) keeping.keep(AHEAD_BYTES, AHEAD_BYTES);
    };
    return { use: come, expect: come, [Symbol.dispose]: keeping.end };
  }

  /** Room of one: others are told of it before theirs is looked at, so that of two who take the last at once neither believes to have it. */
  #keepOn(directory: string) {
    let keptBytes = 0;
    const set = (bytes: number) => {
      const { device } = this.#diskOf(directory)!;
      this.#heldBytes.set(device, (this.#heldBytes.get(device) ?? 0) + bytes - keptBytes);
      keptBytes = bytes;
      this.#tell();
    };
    return {
      /**
       * Throws STORAGE_FULL where it does not fit, and keeps what it had.
       * @param ofBytes what has to fit, more than what is kept; where left out, that is looked at only where it is more than before
       */
      keep: (bytes: number, ofBytes?: number) => {
        const before = keptBytes;
        set(bytes);
        if (ofBytes === undefined && bytes <= before) return;
        const ageMaxMs = before === 0 ? 0 : OTHERS_AGE_MAX_MS;
        try {
          this.#checkRoom(directory, (ofBytes ?? bytes) - bytes, ofBytes ?? bytes - before, ageMaxMs);
        } catch (error) {
          set(before);
          throw error;
        }
      },
      end: () => set(0),
    };
  }

  #tell(): void {
    const { shared } = this.#options;
    if (!shared) return;
    const recent = this.#takenBytes + this.#takenBefore;
    const devices = new Set(this.#disks.map(({ device }) => device));
    shared.tell(new Map([...devices].map((device) => [device, (this.#heldBytes.get(device) ?? 0) + recent])));
  }

  lackBytes(directory: string): number {
    const disk = this.#diskOf(directory);
    return disk ? Math.max(0, holdFloorBytes(disk) - (disk.freeBytes - this.#takenBytes)) : 0;
  }

  /**
   * Throws STORAGE_FULL where so much more does not fit.
   * @param saidBytes what it is for, all of it
   * @param ageMaxMs how long ago what others keep may have been read
   */
  #checkRoom(directory: string, bytes: number, saidBytes: number, ageMaxMs: number): void {
    const disk = this.#diskOf(directory)!;
    const heldBytes = this.#heldBytes.get(disk.device) ?? 0;
    const keptBytes = heldBytes + (this.#options.shared?.othersOn(disk.device, ageMaxMs) ?? 0);
    const floorBytes = holdFloorBytes(disk);
    if (disk.freeBytes - this.#takenBytes - keptBytes - bytes >= floorBytes) return;
    const othersMib = mibOf(keptBytes - (saidBytes - bytes));
    const others = othersMib > 0 ? `${othersMib} MiB of it are kept for other files on their way, and ` : '';
    throw new AppError(
      'STORAGE_FULL',
      `there is no room for ${mibOf(saidBytes)} MiB here: ${mibOf(disk.freeBytes)} MiB of the disk are free; ${others}${mibOf(floorBytes)} MiB have to stay free`,
    );
  }

  /** The disk that a directory is on: that of the innermost directory around it that is looked at, or else the one with the least room. */
  #diskOf(directory: string): Disk | undefined {
    const around = this.#disks.filter((disk) => isWithin(directory, disk.directory));
    const [innermost] = around.sort((one, other) => other.directory.length - one.directory.length);
    return innermost ?? this.#tightest;
  }

  async look(): Promise<void> {
    const { setMib, measure = measureDisk } = this.#options;
    const seenBytes = this.#takenBytes;
    const found = await Promise.all(
      this.#directories.map(async (directory) => {
        const size = await measure(directory).catch((error: unknown) => {
          // Its disk is not mounted: whoever works in it finds that out.
          if (isMissing(error)) return undefined;
          throw error;
        });
        if (!size) return undefined;
        const { freeBytes, sizeBytes, device } = size;
        return { directory, device, freeBytes, reserveBytes: decideReserveBytes(sizeBytes, setMib) };
      }),
    );
    this.#disks = found.filter((disk) => disk !== undefined);
    // What was taken meanwhile may not be in what was measured.
    this.#takenBytes = Math.max(0, this.#takenBytes - seenBytes);
    this.#takenBefore = seenBytes;
    this.#decide();
    this.#tell();
    this.#options.shared?.renew();
  }

  #decide(): void {
    const { log } = this.#options;
    const hadRoom = this.#hasRoom;
    const tight = this.#disks.find(({ freeBytes, reserveBytes }) => {
      return !mayWrite({ freeBytes: freeBytes - this.#takenBytes, reserveBytes }, hadRoom);
    });
    this.#hasRoom = tight === undefined;
    if (hadRoom && tight) {
      const { directory, freeBytes, reserveBytes } = tight;
      const fields = { directory, free_mib: mibOf(freeBytes), reserve_mib: mibOf(reserveBytes) };
      log.error(fields, 'the disk is nearly full: writes are refused until there is space; reads continue');
    }
    if (!hadRoom && !tight) log.info('the disk has space again: writes are accepted');
  }

  /** Looks again and again until the signal ends. */
  async run(signal: AbortSignal): Promise<void> {
    const { log } = this.#options;
    await runLoop({ name: 'disk', intervalMs: LOOK_MS, signal, log }, () => this.look());
  }
}
