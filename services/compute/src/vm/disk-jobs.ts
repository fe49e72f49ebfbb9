import { pause } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { DISK_DEVICE } from './command-line.ts';
import type { QmpClient } from './qmp.ts';

const POLL_MS = 200;

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
 * guest goes on. Throws INTERNAL with QEMU's own words.
 * @param id names the job inside QEMU, once
 */
export async function copyDiskLive(
  vm: Running,
  target: string,
  id: string,
  signal: AbortSignal,
): Promise<void> {
  const node = targetOf(id);
  const file = { driver: 'file', filename: target };
  await vm.command('blockdev-add', { driver: 'qcow2', 'node-name': node, file });
  try {
    const job = { 'job-id': id, device: DISK_DEVICE, target: node, sync: 'full', 'auto-dismiss': false };
    await vm.command('blockdev-backup', job);
    await waitForJob(vm, id, signal);
  } catch (error) {
    // It may go on, whatever was heard of it, and nobody follows it any more.
    await endJob(vm, id);
    throw error;
  } finally {
    await vm.command('blockdev-del', { 'node-name': node }).catch(() => {});
  }
}

/** The node of QEMU's that a copy is written to. */
const targetOf = (id: string) => `to-${id}`;

/** Does nothing where there is none. */
const endJob = (vm: Running, id: string) => waitForJob(vm, id, AbortSignal.abort()).catch(() => {});

/**
 * Ends the copies that nobody follows, since their process has ended or the connection to QEMU had: QEMU would write them to their ends, into files whose names are
 * gone, and keep those for as long as the machine runs.
 */
export async function endLeftCopies(vm: Running): Promise<void> {
  for (const { id } of (await vm.command('query-jobs')) as ShownJob[]) {
    await endJob(vm, id);
    await vm.command('blockdev-del', { 'node-name': targetOf(id) }).catch(() => {});
  }
}

async function waitForJob(vm: Running, id: string, signal: AbortSignal): Promise<void> {
  for (;;) {
    const jobs = (await vm.command('query-jobs')) as ShownJob[];
    const job = jobs.find((one) => one.id === id);
    if (!job) throw new AppError('INTERNAL', 'QEMU lost the disk copy job');
    if (job.status === 'concluded') {
      await vm.command('job-dismiss', { id });
      if (job.error !== undefined) throw new AppError('INTERNAL', `the disk was not copied: ${job.error}`);
      return;
    }
    if (signal.aborted) await vm.command('job-cancel', { id }).catch(() => {});
    await pause(POLL_MS, NEVER);
  }
}

const NEVER = new AbortController().signal;
