import assert from 'node:assert/strict';
import { type SoakOptions, withDirectory } from './options.ts';
import { assertEach } from './run/counts.ts';
import { runSockets } from './sockets/run.ts';

const READERS = 10_000;
const CHANNELS = 500;
const GREEDY = 20;
const SLOW = 50;
const PER_SECOND = 500;
/** What the memory of a node may grow by while all of them read. */
const GROWTH_BYTES_MAX = 512 * 1024 * 1024;
const MEBIBYTE = 1024 * 1024;
const mib = (bytes: number) => Math.round(bytes / MEBIBYTE);

/** Ten thousand WebSockets on one node, some of which nobody reads, while messages come in. */
export async function soakSockets({ seconds }: SoakOptions): Promise<void> {
  await withDirectory(async (directory) => {
    const result = await runSockets({
      ...{ directory, channels: CHANNELS, readers: READERS, greedy: GREEDY, slow: SLOW },
      perSecond: PER_SECOND,
      isEnough: (_sent, elapsedMs) => elapsedMs >= seconds * 1000,
      onProgress: console.log,
    });
    const { gaps, duplicates, behind, ended, letGo, memoryBefore, memoryMost } = result;
    console.log(
      `${result.open} sockets, ${result.sent} messages (${Math.round(result.rate)} a second once all were there), ${result.frames} frames read; ${gaps} gaps, ${duplicates} duplicates, ${behind} behind at the end, ${ended} ended early; ${letGo} of ${SLOW} slow ones let go; memory ${mib(memoryBefore)} MiB, at most ${mib(memoryMost)} MiB`,
    );
    assert.deepEqual({ gaps, duplicates, behind, ended }, { gaps: 0, duplicates: 0, behind: 0, ended: 0 });
    assert.equal(result.open, READERS + GREEDY + SLOW, 'all came');
    assertEach({ sent: result.sent, frames: result.frames, memoryBefore });
    assert.equal(letGo, SLOW, 'who reads nothing is let go');
    assert.ok(memoryMost - memoryBefore <= GROWTH_BYTES_MAX, 'memory is bounded');
  });
}
