import { chmod, chown } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';

/** Users of machines are numbers far above those of people, daemons and sandboxes of programs; none is written down anywhere. */
const MACHINE_UID_BASE = 0x70000000;
const MACHINE_UID_DIGITS = 7;
/** Who tools are that read and write images. */
export const TOOLS_UID = 0x6fffffff;

/** No core dumps, which would hold a guest's memory; files and threads for the largest machine. */
export const QEMU_LIMITS = ['--core=0', '--nofile=4096', '--nproc=4096'];

/** The user, and the group, of an instance's QEMU: it follows from the instance. @param id 64 hexadecimal digits */
export function machineUid(id: string): number {
  return MACHINE_UID_BASE + Number.parseInt(id.slice(0, MACHINE_UID_DIGITS), 16);
}

/** Lets a user pass through a directory, and gives it files there. What an older node made becomes its own too. */
export async function giveTo(uid: number, directory: string, files: readonly string[]): Promise<void> {
  await chown(directory, 0, uid);
  await chmod(directory, 0o710);
  for (const file of files) await chown(isAbsolute(file) ? file : join(directory, file), uid, uid);
}
