import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../host/run.ts';

/** More than any disk of a test that is to be full. */
const FILLER_BYTES = 8 * 1024 ** 2;

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

/** Takes all room that is left on the disk of a directory. */
export async function fillDisk(directory: string): Promise<void> {
  // The kernel writes as much of it as there is room for.
  await writeFile(join(directory, 'filler'), Buffer.alloc(FILLER_BYTES)).catch(() => {});
}

/** Puts a file there that cannot be read: it fails with EIO, as that of a damaged sector does, for root, too. */
export async function damageSector(path: string): Promise<void> {
  await rm(path, { force: true });
  await symlink('/proc/self/mem', path);
}

/** Puts a file there that nobody may read, not even root: it fails with EACCES, and keeps what it is. */
export async function forbid(path: string): Promise<void> {
  await rm(path, { force: true });
  await symlink('/proc/sys/net/ipv4/route/flush', path);
}
