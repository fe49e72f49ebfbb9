import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../host/run.ts';

/** Runs a test in an empty directory, which is removed after it. */
export async function inDirectory(body: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-compute-'));
  try {
    await body(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** The same on a disk of its own, in memory. Needs root. */
export const onDiskOf = (mib: number, body: (directory: string) => Promise<void>): Promise<void> =>
  inDirectory(async (directory) => {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${mib}m`, 'tmpfs', directory]);
    try {
      await body(directory);
    } finally {
      await run('umount', ['-l', directory]);
    }
  });
