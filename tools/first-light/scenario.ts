// The life of a network, and machines on it by commands and by clicks. Run by first-light.vm.e2e.test.ts in a network namespace of its
// own.
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { liveByClicks, PAGE } from '../../apps/cli/src/testing/console/by-clicks.ts';
import { playFirstLight } from '../../apps/cli/src/testing/first-light.ts';
import { playAt } from '../../apps/cli/src/testing/processes.ts';
import { say } from '../../apps/cli/src/testing/shell.ts';
import { IMAGE_FILES } from '../../services/compute/src/images/image.ts';
import { findCacheDir, openCache } from '../../services/compute/src/testing/play.ts';
import { makeTinyDisk } from '../../services/compute/src/testing/tiny-guest.ts';

/** What the guest serves on port 80; on 443, where TLS would be, it listens. */
const ANSWERS = {
  80: [
    'while read -r line; do [ "$' + '{#line}" -le 1 ] && break; done',
    `printf 'HTTP/1.1 200 OK\\r\\nContent-Type: text/plain\\r\\nContent-Length: ${PAGE.length}\\r\\nConnection: close\\r\\n\\r\\n${PAGE}'`,
  ].join('\n'),
  443: 'exec cat',
};

/** A disk that boots in a tenth of the time of a distribution. */
async function makeDisk(cache: string): Promise<string> {
  const { directory } = await openCache(cache).ensure('debian:12', () => {});
  const disk = join(home, 'tiny.qcow2');
  await writeFile(disk, await makeTinyDisk(join(directory, IMAGE_FILES.initrd), { answers: ANSWERS }));
  return disk;
}

/** Another machine on the same network. */
async function clickMachine(core: string): Promise<void> {
  const disk = await makeDisk(findCacheDir());
  const begunMs = performance.now();
  await liveByClicks(core, disk);
  say(`a key, a disk, a machine and its end by clicks: ${Math.round(performance.now() - begunMs)} ms`);
}

const home = await mkdtemp(join(tmpdir(), 'skerry-first-light-'));
await playAt(home, () => playFirstLight(home, clickMachine));
