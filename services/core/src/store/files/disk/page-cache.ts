import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { within } from '@skerry/kit';

/** Opening a file takes no longer, unless its disk hangs. */
const DROP_MS = 10_000;

const LATE = Symbol('late');

/**
 * Has the kernel forget what it knows of a file that is on the disk: the next read is one of the disk. By `dd` of the GNU coreutils ("Advise
 * to drop cache for whole file" in its manual), as Node has no posix_fadvise(2). Throws where that is not there, or cannot open the file.
 */
export async function dropCached(path: string): Promise<void> {
  const parameters = [`if=${path}`, 'iflag=nocache', 'count=0', 'status=none'];
  const run = promisify(execFile)('dd', parameters, { timeout: DROP_MS, killSignal: 'SIGKILL' });
  if ((await within(DROP_MS, run, LATE)) === LATE) throw new Error(`dd did not open ${path}`);
}
