import { backoffMs, pause } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { DISK_DEVICE } from './command-line.ts';
import type { QmpClient } from './qmp.ts';

const POLL_MS = 200;
/** How long QEMU may take to end a copy that is not wanted any more. */
const CANCEL_MS = 60_000;
const MINUTE_MS = 60_000;
/** Where QEMU does not answer while a copy is to be ended: the longest rest before it is asked again, and how often it is asked. */
const SILENT_REST_MAX_MS = 30_000;
const SILENT_TRIES = 30;

export interface CopyLimits {
  /** How long the copy may take, in milliseconds. */
  readonly limitMs: number;
  /** How long it may take to end it then. */
  readonly cancelMs?: number;
  readonly signal: AbortSignal;
}

/** A machine that runs. */
type Running = Pick<QmpClient, 'command'>;

interface ShownJob {
  readonly id: string;
  readonly status: string;
  readonly error?: string;
}

/** Keeps the state of a running machine's disk under a name, inside the disk. The guest goes on; it is as after a power cut. */
export async function snapshotLive(vm: Running, name: string): Promise<void> {
  await vm.command('blockdev-snapshot-internal-sync', { device: DISK_DEVICE, name });
}

export async function deleteSnapshotLive(vm: Running, name: string): Promise<void> {
  await vm.command('blockdev-snapshot-delete-internal-sync', { device: DISK_DEVICE, name });
}

/**
 * Copies a running machine's disk, as it is at the beginning of the copy, into a disk image that is there and empty. The
 * guest goes on. Throws INTERNAL with QEMU's own words, or TIMED_OUT.
 * @param id names the job inside QEMU, once
 */
export async function copyDiskLive(
  vm: Running,
  target: string,
  id: string,
  { limitMs, cancelMs = CANCEL_MS, signal }: CopyLimits,
): Promise<void> {
  const over = AbortSignal.timeout(limitMs);
  const node = targetOf(id);
  const file = { driver: 'file', filename: target };
  const own = followedOf(vm);
  await vm.command('blockdev-add', { driver: 'qcow2', 'node-name': node, file });
  own.add(id);
  try {
    const job = { 'job-id': id, device: DISK_DEVICE, target: node, sync: 'full', 'auto-dismiss': false };
    await vm.command('blockdev-backup', job);
    await waitForJob(vm, id, AbortSignal.any([signal, over]), cancelMs);
    await removeTarget(vm, id);
  } catch (error) {
    // It may go on, whatever was heard of it, and nobody follows it any more.
    own.delete(id);
    await endCopy(vm, id, cancelMs).catch(() => void whileSilent(() => endCopy(vm, id), signal));
    if (!over.aborted || signal.aborted) throw error;
    const minutes = Math.round(limitMs / MINUTE_MS);
    throw new AppError('TIMED_OUT', `the disk was not copied within ${minutes} minutes`, { cause: error });
  } finally {
    own.delete(id);
  }
}

/** The copies of each machine that somebody follows. */
const followed = new WeakMap<Running, Set<string>>();

function followedOf(vm: Running): Set<string> {
  const ids = followed.get(vm) ?? new Set<string>();
  followed.set(vm, ids);
  return ids;
}

/** The node of QEMU's that a copy is written to. */
const targetOf = (id: string) => `to-${id}`;

const removeTarget = (vm: Running, id: string) =>
  vm.command('blockdev-del', { 'node-name': targetOf(id) }).catch(() => {});

const isSilence = (error: unknown) => error instanceof AppError && error.code === 'TIMED_OUT';

/** Does nothing where there is none. Throws TIMED_OUT where QEMU does not answer, or does not end it: then it may go on. */
async function endCopy(vm: Running, id: string, cancelMs = CANCEL_MS): Promise<void> {
  await waitForJob(vm, id, AbortSignal.abort(), cancelMs).catch((error: unknown) => {
    if (isSilence(error)) throw error;
  });
  await removeTarget(vm, id);
}

/**
 * Does it, and again while QEMU is there and does not answer: it hangs where its disk is slow. One whose connection is gone is
 * spoken to when that is there again.
 */
async function whileSilent(work: () => Promise<void>, signal: AbortSignal): Promise<void> {
  for (let tries = 1; tries <= SILENT_TRIES; tries++) {
    try {
      return await work();
    } catch (error) {
      if (!isSilence(error)) return;
      if (!(await pause(backoffMs(tries, POLL_MS, SILENT_REST_MAX_MS), signal))) return;
    }
  }
}

/**
 * Ends the copies that nobody follows, since their process has ended or the connection to QEMU had: QEMU would write them to their
 * ends, into files whose names are gone, and keep those for as long as the machine runs.
 */
export function endLeftCopies(vm: Running): Promise<void> {
  return whileSilent(async () => {
    const left = (await listJobs(vm)).filter(({ id }) => !followedOf(vm).has(id));
    for (const { id } of left) await endCopy(vm, id);
  }, NEVER);
}

const listJobs = async (vm: Running) => (await vm.command('query-jobs')) as ShownJob[];

/** @param signal ends the job, within `cancelMs`. Throws TIMED_OUT where it does not */
async function waitForJob(vm: Running, id: string, signal: AbortSignal, cancelMs: number): Promise<void> {
  for (let cancelledMs: number | undefined; ; ) {
    const job = (await listJobs(vm)).find((one) => one.id === id);
    if (!job) throw new AppError('INTERNAL', 'QEMU lost the disk copy job');
    if (job.status === 'concluded') {
      await vm.command('job-dismiss', { id });
      if (job.error !== undefined) throw new AppError('INTERNAL', `the disk was not copied: ${job.error}`);
      return;
    }
    if (signal.aborted) {
      if (cancelledMs !== undefined && performance.now() - cancelledMs > cancelMs)
        throw new AppError('TIMED_OUT', 'QEMU does not end the copy of the disk');
      cancelledMs ??= performance.now();
      await vm.command('job-cancel', { id }).catch(() => {});
    }
    await pause(POLL_MS, NEVER);
  }
}

const NEVER = new AbortController().signal;
