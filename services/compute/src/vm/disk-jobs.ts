import { pause } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { DISK_DEVICE } from './command-line.ts';
import type { Vm } from './vm.ts';

const POLL_MS = 200;

interface ShownJob {
  readonly id: string;
  readonly status: string;
  readonly 'current-progress'?: number;
  readonly 'total-progress'?: number;
  readonly error?: string;
}

/** Keeps the state of a running machine's disk under a name, inside the disk. The guest goes on; it is as after a power cut. */
export async function snapshotLive(vm: Vm, name: string): Promise<void> {
  await vm.command('blockdev-snapshot-internal-sync', { device: DISK_DEVICE, name });
}

export async function deleteSnapshotLive(vm: Vm, name: string): Promise<void> {
  await vm.command('blockdev-snapshot-delete-internal-sync', { device: DISK_DEVICE, name });
}

/**
 * Copies a running machine's disk, as it is at the beginning of the copy, into a disk image that is there and empty. The
 * guest goes on. Throws INTERNAL with QEMU's own words.
 * @param id names the job inside QEMU, once
 */
export async function copyDiskLive(
  vm: Vm,
  target: string,
  id: string,
  signal: AbortSignal,
  onProgress: (part: number) => void,
): Promise<void> {
  const node = `to-${id}`;
  const file = { driver: 'file', filename: target };
  await vm.command('blockdev-add', { driver: 'qcow2', 'node-name': node, file });
  try {
    const job = { 'job-id': id, device: DISK_DEVICE, target: node, sync: 'full', 'auto-dismiss': false };
    await vm.command('blockdev-backup', job);
    await waitForJob(vm, id, signal, onProgress);
  } finally {
    await vm.command('blockdev-del', { 'node-name': node }).catch(() => {});
  }
}

async function waitForJob(
  vm: Vm,
  id: string,
  signal: AbortSignal,
  onProgress: (part: number) => void,
): Promise<void> {
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
    onProgress((job['current-progress'] ?? 0) / Math.max(1, job['total-progress'] ?? 1));
    await pause(POLL_MS, NEVER);
  }
}

const NEVER = new AbortController().signal;
