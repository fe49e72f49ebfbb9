// A network, and a machine on it by clicks alone. Run by clicks.vm.e2e.test.ts in a network namespace of its own.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { liveByClicks, PAGE } from '../../apps/cli/src/testing/console/by-clicks.ts';
import { end, startNetwork } from '../../apps/cli/src/testing/network.ts';
import { endAllOf } from '../../apps/cli/src/testing/processes.ts';
import { say, succeed } from '../../apps/cli/src/testing/shell.ts';
import { IMAGE_FILES } from '../../services/compute/src/images/image.ts';
import { findCacheDir, openCache } from '../../services/compute/src/testing/play.ts';
import { makeTinyDisk } from '../../services/compute/src/testing/tiny-guest.ts';

const CORE = 'http://127.0.0.1:4024';

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

const cache = findCacheDir();
const home = await mkdtemp(join(tmpdir(), 'skerry-clicks-'));
Object.assign(process.env, { SKERRY_HOME: home, SKERRY_CACHE: cache });
try {
  await succeed('ip', 'link', 'set', 'lo', 'up');
  const disk = await makeDisk(cache);
  const up = await startNetwork();
  const begunMs = performance.now();
  await liveByClicks(CORE, disk);
  say(`a key, a disk, a machine and its end by clicks: ${Math.round(performance.now() - begunMs)} ms`);
  await end(up, 'SIGINT');
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  // The compute node may end before it hears that the machine is deleted; machines outlive their node.
  endAllOf(home);
  await rm(home, { recursive: true, force: true });
}
