const MIB = 1024 ** 2;

/** The database's log may grow to a fortieth of the disk. 32 MiB is the least that PostgreSQL takes. */
const LOG_BYTES = { min: 32 * MIB, max: 512 * MIB, partOfDisk: 40 } as const;
/**
 * What the node leaves free: once its log (`max_wal_size` is where a checkpoint begins, not where writing stops), and
 * once what recovery writes before the log can be let go.
 */
const RESERVE_LOGS = 2;
/** Once it refused it takes again when there is this much more than the reserve, so that it does not flutter. */
const RESUME_FACTOR = 1.25;
/** What is large, and known to be before it comes, leaves this much: what is small and what nobody announces goes on behind it. */
const HOLD_FACTOR = 1.5;
/** Below this part of the reserve PostgreSQL may not be able to write its log. */
const FULL_PART = 1 / 4;

/** How much log the embedded database keeps on a disk of this size, in bytes; whole MiB. */
export function decideLogBytes(diskBytes: number): number {
  const { min, max, partOfDisk } = LOG_BYTES;
  return Math.floor(Math.min(max, Math.max(min, diskBytes / partOfDisk)) / MIB) * MIB;
}

/** Below so much free disk nothing new is taken. @param setMib as the settings say; 0: as the disk's size asks for */
export const decideReserveBytes = (diskBytes: number, setMib: number): number =>
  setMib > 0 ? setMib * MIB : RESERVE_LOGS * decideLogBytes(diskBytes);

export interface DiskFacts {
  readonly freeBytes: number;
  readonly reserveBytes: number;
}

/** Whether something new may be written. @param mayNow whether it was so at the last look */
export const mayWrite = ({ freeBytes, reserveBytes }: DiskFacts, mayNow: boolean): boolean =>
  freeBytes >= reserveBytes * (mayNow ? 1 : RESUME_FACTOR);

/** What a disk has left at least once something large has come whole. */
export const holdFloorBytes = ({ reserveBytes }: Pick<DiskFacts, 'reserveBytes'>): number =>
  reserveBytes * HOLD_FACTOR;

export const isFull = ({ freeBytes, reserveBytes }: DiskFacts): boolean =>
  freeBytes < reserveBytes * FULL_PART;

/** Somebody should make room. */
export const isLow = ({ freeBytes, reserveBytes }: DiskFacts): boolean =>
  freeBytes < reserveBytes * RESUME_FACTOR;

export const mibOf = (bytes: number): number => Math.floor(bytes / MIB);
