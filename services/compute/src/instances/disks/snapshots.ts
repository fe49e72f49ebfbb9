import { basename, dirname, join } from 'node:path';
import { AppError } from '@skerry/protocol';
import { runImageTool } from '../../host/image-tool.ts';
import { promiseRoom } from '../../host/room.ts';
import { machineUid } from '../../host/users.ts';
import { IMAGE_FILES } from '../../images/image.ts';
import { deleteSnapshotLive, snapshotLive } from '../../vm/disk-jobs.ts';
import { MACHINE_FILES } from '../../vm/machine.ts';
import type { IdleInstance } from '../worker/owner-tasks.ts';
import { readUnwritten } from './promised.ts';

/** A state of an instance's disk that was kept under a name, inside the disk. */
export interface Snapshot {
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly createdAtMs: number;
}

/** A snapshot keeps every block that changes after it: many of them fill the node's disk. */
const SNAPSHOTS_MAX = 8;
/** It begins with a letter: qemu-img takes a number for the snapshot's place in its list. */
const NAME = /^[A-Za-z][A-Za-z0-9._-]{0,63}$/;
const TIMEOUT_MS = 10 * 60_000;

interface ShownImage {
  readonly 'virtual-size': number;
  readonly snapshots?: readonly { readonly name: string; readonly 'date-sec': number }[];
}

/** Throws INVALID_PARAMETERS. */
export function parseSnapshotName(name: unknown): string {
  if (typeof name === 'string' && NAME.test(name)) return name;
  throw new AppError(
    'INVALID_PARAMETERS',
    'a snapshot name must start with a letter and have at most 64 letters, digits, ".", "_" and "-"',
  );
}

async function readImage(directory: string): Promise<ShownImage> {
  const disk = join(directory, MACHINE_FILES.disk);
  // QEMU may hold the disk: only its header is read.
  const info = ['info', '--force-share', '--output=json', '-f', 'qcow2', disk];
  const shown = await runImageTool(['qemu-img', ...info], {
    uid: machineUid(basename(directory)),
    reads: [disk],
  });
  return JSON.parse(shown) as ShownImage;
}

const snapshotsOf = ({ snapshots = [] }: ShownImage): Snapshot[] =>
  snapshots.map((one) => ({ name: one.name, createdAtMs: one['date-sec'] * 1000 }));

export const listSnapshots = async (directory: string): Promise<Snapshot[]> =>
  snapshotsOf(await readImage(directory));

/**
 * Throws STORAGE_FULL where the disk could not be written once more as a whole, since a snapshot keeps what that replaces, beside what
 * all others may still write.
 */
function promiseRoomBeside(instance: IdleInstance, image: ShownImage): Promise<Disposable> {
  const { directory, record } = instance;
  // Nothing is written there: it is promised until the disk itself says that it has a snapshot.
  const path = join(directory, 'snapshot');
  const what = 'what the disk may write beside a snapshot';
  return promiseRoom(path, image['virtual-size'], what, () => readUnwritten(dataDirOf(instance), record.id));
}

/** Keeps the disk as it is now. Of a machine that runs it is as after a power cut. Throws SNAPSHOT_EXISTS, TOO_MANY_COPIES, STORAGE_FULL. */
export async function createSnapshot(instance: IdleInstance, name: string): Promise<Snapshot[]> {
  needDisk(instance);
  const image = await readImage(instance.directory);
  const there = snapshotsOf(image);
  if (there.some((one) => one.name === name))
    throw new AppError('SNAPSHOT_EXISTS', `a snapshot ${name} already exists`);
  if (there.length >= SNAPSHOTS_MAX)
    throw new AppError('TOO_MANY_COPIES', `an instance can have ${SNAPSHOTS_MAX} snapshots; delete one`);
  using _room = await promiseRoomBeside(instance, image);
  if (instance.vm) await snapshotLive(instance.vm, name);
  else await change(instance, '-c', name);
  return listSnapshots(instance.directory);
}

/** Throws SNAPSHOT_NOT_FOUND. */
export async function deleteSnapshot(instance: IdleInstance, name: string): Promise<Snapshot[]> {
  await needSnapshot(instance, name);
  if (instance.vm) await deleteSnapshotLive(instance.vm, name);
  else await change(instance, '-d', name);
  return listSnapshots(instance.directory);
}

/** Puts the disk back to what it was; what was written since is lost. The guest is shut down for it. Throws SNAPSHOT_NOT_FOUND. */
export async function revertToSnapshot(instance: IdleInstance, name: string): Promise<void> {
  await needSnapshot(instance, name);
  await instance.stop();
  await change(instance, '-a', name);
}

export function needDisk({ record }: IdleInstance): void {
  if (record.base === null) throw new AppError('INSTANCE_NOT_READY', 'the instance has no disk yet');
}

async function needSnapshot(instance: IdleInstance, name: string): Promise<void> {
  needDisk(instance);
  if (!(await listSnapshots(instance.directory)).some((one) => one.name === name))
    throw new AppError('SNAPSHOT_NOT_FOUND', `the instance has no snapshot ${name}`);
}

async function change(instance: IdleInstance, flag: string, name: string): Promise<void> {
  const disk = join(instance.directory, MACHINE_FILES.disk);
  await runImageTool(
    ['qemu-img', 'snapshot', flag, name, disk],
    { uid: machineUid(instance.record.id), writes: [disk], reads: backingOf(instance) },
    { timeoutMs: TIMEOUT_MS },
  );
}

/** The files that an instance's disk builds on. */
export function backingOf(instance: Pick<IdleInstance, 'directory' | 'record'>): string[] {
  const { base } = instance.record;
  return base === null ? [] : [join(dataDirOf(instance), base, IMAGE_FILES.disk)];
}

const dataDirOf = ({ directory }: Pick<IdleInstance, 'directory'>) => dirname(dirname(directory));
