import { lstat, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import {
  isForbidden,
  isLacking,
  isMissing,
  type Logger,
  makeDirectory,
  readTextIfAny,
  setAside,
  writeFileAtomically,
} from '@skerry/kit';
import { AppError, fieldsOf, isItemHash64, type Phase, type Reason } from '@skerry/protocol';
import type { Ipv4Claim } from '../../network/address-book.ts';
import type { Volume } from '../../vm/machine.ts';
import type { Wanted } from '../wanted.ts';

export interface Status {
  readonly phase: Phase;
  readonly reason: Reason | null;
  readonly observedAtMs: number;
  /** The last restart that was carried out. */
  readonly restartId: string | null;
}

/** How an instance is, in words for its owner. Pure. */
export const phaseText = ({ phase, reason }: Pick<Status, 'phase' | 'reason'>): string =>
  `the instance is ${phase}${reason ? ` (${reason.message})` : ''}`;

/** Why an instance is not wanted on this node any more: another one has it, or its owner forgot it. */
export type LeavingReason = 'moved' | 'forgotten';

/** All that this node knows of an instance, kept in `vm.json` beside its disk: enough to go on after being killed at any line. */
export interface InstanceRecord {
  readonly version: 1;
  readonly id: string;
  /** The last wish that was heard: an instance goes on while no core node answers. */
  readonly wanted: Wanted;
  /** Why the instance is to leave this node, where it is: what was begun goes on after a restart. */
  readonly leaving?: LeavingReason | undefined;
  /** Directory, below the data directory, of the backing disk; null until the disk is made. */
  readonly base: string | null;
  /** Directory of the kernel and initrd; null where the disk boots by itself; absent where it is the base's. */
  readonly kernel?: string | null | undefined;
  /** Disks beside its own; absent where there are none. */
  readonly volumes?: readonly Volume[] | undefined;
  /** Its machine, its disk or volumes were here without a record: it has what it was promised, also where it cannot be prepared. */
  readonly isFound?: true | undefined;
  /** Files that go before the next disk is made: those of before a reinstall. */
  readonly discarded?: readonly string[] | undefined;
  /** A disk that is about to take the place of the instance's, and may have done so. */
  readonly restoring?: Restoring | undefined;
  /** The instance's part of the node's IPv4: kept, so that ports stay what they are. Absent in records of older versions. */
  readonly ipv4?: Ipv4Claim | undefined;
  /** QEMU was started and not stopped on purpose since. */
  readonly isStarted: boolean;
  /** When the guest began to boot, milliseconds since 1970; null while it does not run. */
  readonly bootedAtMs: number | null;
  /** The last restart that was carried out. */
  readonly restartId: string | null;
  /** The guest powered itself off, or its owner had it stopped here: it stays off until somebody asks again. */
  readonly isPoweredOff: boolean;
  /** It was the owner's doing. */
  readonly isOwnerStopped?: boolean | undefined;
  /** When its owner wants it stopped, milliseconds since 1970. */
  readonly expiresAtMs?: number | undefined;
  /** Why this node gave up, until somebody asks again. */
  readonly failure: Reason | null;
  readonly status: Status | null;
  /** When each phase of the present round was entered, milliseconds since 1970. */
  readonly phaseTimesMs: PhaseTimes;
  /** `observedAtMs` of the last status that a core node took. */
  readonly publishedAtMs: number;
}

export interface Restoring {
  /** The number of the new disk's file. */
  readonly inode: string;
  readonly bootsByItself: boolean;
}

export type PhaseTimes = Readonly<Partial<Record<Phase, number>>>;

const ROUND: readonly Phase[] = [
  'scheduled',
  'preparing',
  'starting',
  'running',
  'stopping',
  'stopped',
  'failed',
];

/** The times after a phase was entered: those of phases that come later in a round belong to the round before. Pure. */
export function enterPhase(times: PhaseTimes, phase: Phase, nowMs: number): PhaseTimes {
  const earlier = ROUND.slice(0, ROUND.indexOf(phase)).flatMap((one) =>
    times[one] === undefined ? [] : [[one, times[one]]],
  );
  return { ...Object.fromEntries(earlier), [phase]: nowMs };
}

const RECORD_FILE = 'vm.json';

export function newRecord(id: string, wanted: Wanted, nowMs: number): InstanceRecord {
  return {
    version: 1,
    id,
    wanted,
    base: null,
    isStarted: false,
    bootedAtMs: null,
    // What was asked for before the instance came here is not asked for again.
    restartId: wanted.restartId,
    isPoweredOff: false,
    failure: null,
    status: null,
    phaseTimesMs: { scheduled: nowMs },
    publishedAtMs: 0,
  };
}

export function instancesDirectory(dataDir: string): string {
  return join(dataDir, 'instances');
}

export function instanceDirectory(dataDir: string, id: string): string {
  return join(instancesDirectory(dataDir), id);
}

/**
 * What is on the disk that instances are written to, for whoever asks how much is free there: `instances/` may be a link or a mount that
 * leads to another disk than the rest of the data directory.
 *
 * @throws AppError INVALID_CONFIG where it is a link to nowhere, as while that disk is not mounted: what is there is not known
 */
export async function instancesDisk(dataDir: string): Promise<string> {
  const directory = instancesDirectory(dataDir);
  const lack = async (look: typeof stat) =>
    look(directory).then(
      () => false,
      (error: unknown) => {
        if (isMissing(error)) return true;
        throw error;
      },
    );
  if (!(await lack(stat))) return directory;
  // The first instance makes it.
  if (await lack(lstat)) return dataDir;
  throw new AppError(
    'INVALID_CONFIG',
    'instances/ of the data directory is a link to nothing that is there; mount the disk that it leads to',
  );
}

export async function writeRecord(dataDir: string, record: InstanceRecord): Promise<void> {
  const directory = instanceDirectory(dataDir, record.id);
  await makeDirectory(directory);
  await writeFileAtomically(join(directory, RECORD_FILE), `${JSON.stringify(record, null, 2)}\n`, 0o600);
}

/** Throws where it is none, or lacks what every record has: one of them must not keep the node from the others. */
function parseRecord(id: string, value: unknown): InstanceRecord {
  const { version, id: noted, wanted } = fieldsOf(value);
  const { cpu, memoryMib, diskGib, allowedPorts } = fieldsOf(wanted);
  const isRight =
    version === 1 &&
    noted === id &&
    [cpu, memoryMib, diskGib].every(Number.isFinite) &&
    Array.isArray(allowedPorts);
  if (!isRight) throw new Error(`it is not a record of ${id}`);
  return value as InstanceRecord;
}

/**
 * Every instance that was here when the last process ended. A record that cannot be read is left alone, which is said where there is
 * a log.
 */
export async function readRecords(dataDir: string, log?: Logger): Promise<InstanceRecord[]> {
  const records: InstanceRecord[] = [];
  for (const name of await listInstanceNames(dataDir)) {
    if (!isItemHash64(name)) continue;
    // Of all, one that the process may not read hides no other.
    const record = await readRecord(dataDir, name, log).catch((error: unknown) => {
      if (!(error instanceof AppError)) throw error;
      leaveAlone(name, error, log);
    });
    if (record) records.push(record);
  }
  return records;
}

/**
 * The record of one instance; undefined where it is damaged, which is said where there is a log. Throws what `isLacking` tells, and
 * INTERNAL where the process may not read it: nothing may take the place of a record that may be whole.
 */
export const readRecord = (dataDir: string, id: string, log?: Logger): Promise<InstanceRecord | undefined> =>
  readRecordIn(instanceDirectory(dataDir, id), id, log);

/** The same, wherever the directory of the instance is. */
export async function readRecordIn(
  directory: string,
  id: string,
  log?: Logger,
): Promise<InstanceRecord | undefined> {
  try {
    const text = await readTextIfAny(join(directory, RECORD_FILE));
    if (text === undefined) return undefined;
    return parseRecord(id, JSON.parse(text));
  } catch (error) {
    if (isLacking(error)) throw error;
    if (isForbidden(error)) throw new AppError('INTERNAL', FORBIDDEN, { cause: error });
    leaveAlone(id, error, log);
    return undefined;
  }
}

/** As its owner reads it: without the place of the file. */
const FORBIDDEN = 'this node may not read its record of the instance';

function leaveAlone(id: string, error: unknown, log: Logger | undefined): void {
  log?.error(
    { err: error, instance: id },
    'the record of an instance cannot be read; the instance is left alone',
  );
}

/** Keeps a record that cannot be read before another takes its place: what it says may be read again later. */
export const setRecordAside = (dataDir: string, id: string): Promise<string> =>
  setAside(join(instanceDirectory(dataDir, id), RECORD_FILE));

/** What is in the directory of all instances, whether or not its record can be read. */
export async function listInstanceNames(dataDir: string): Promise<string[]> {
  try {
    return await readdir(instancesDirectory(dataDir));
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}
