import { chmodSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { acquireLock } from '@skerry/kit';

const PREFIX = 'skerry-run-';
const MEMORY = '/dev/shm';
/** What the tests of a run write at the same time, with the machine image that one of them builds, and what they take themselves. */
const ROOM_BYTES = 8 * 1024 ** 3;
/** Tests run programs that they have written, and make devices in a machine's file system. */
const FORBIDDING = ['ro', 'noexec', 'nodev'];

/**
 * Whether tests can write all that they do below a mount point.
 * @param mounts as in /proc/mounts (proc_pid_mounts(5))
 */
export function isFit(mounts: string, mountPoint: string, freeBytes: number): boolean {
  const [, , type, options] =
    mounts
      .split('\n')
      .map((line) => line.split(' '))
      .findLast(([, at]) => at === mountPoint) ?? [];
  return (
    type === 'tmpfs' &&
    freeBytes >= ROOM_BYTES &&
    !options!.split(',').some((option) => FORBIDDING.includes(option))
  );
}

/**
 * Memory, where there is plenty: hundreds of databases are made and dropped, and each is hundreds of files. A disk takes ten
 * times as long for that as memory, and some are slowest where others keep them busy.
 */
function chooseParent(): string {
  if (process.env.TMPDIR) return tmpdir();
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    const freeBytes = Math.min(bavail * bsize, process.availableMemory());
    if (isFit(readFileSync('/proc/mounts', 'utf8'), MEMORY, freeBytes)) return MEMORY;
  } catch {
    // No such thing here.
  }
  return tmpdir();
}

const lockOf = (directory: string) => acquireLock(join(directory, 'lock'), { waitMs: 0 });

/** What a killed run left mounted in its directory holds it: that is no reason for the next one not to start. */
function removeIfFree(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch (error) {
    console.error(`${path} is left behind by a run that was killed: ${(error as Error).message}`);
  }
}

async function removeAbandoned(parent: string): Promise<void> {
  for (const name of readdirSync(parent).filter((one) => one.startsWith(PREFIX))) {
    const lock = await lockOf(join(parent, name)).catch(() => undefined);
    if (lock) removeIfFree(join(parent, name));
    lock?.[Symbol.dispose]();
  }
}

export interface RunDirectory extends Disposable {
  readonly path: string;
}

/** A directory for everything temporary of a run. Those of runs that were killed are removed. */
export async function makeRunDirectory(): Promise<RunDirectory> {
  const parent = chooseParent();
  await removeAbandoned(parent);
  const made = mkdtempSync(join(parent, `new-${PREFIX}`));
  const lock = await lockOf(made);
  // Nobody takes it for abandoned before it is locked.
  const path = made.replace(`new-${PREFIX}`, PREFIX);
  renameSync(made, path);
  // Tests also run programs as users without rights.
  chmodSync(path, 0o1777);
  return {
    path,
    [Symbol.dispose]: () => {
      rmSync(path, { recursive: true, force: true, maxRetries: 10 });
      lock?.[Symbol.dispose]();
    },
  };
}
