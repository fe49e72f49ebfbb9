import assert from 'node:assert/strict';
import { watchConsole } from './console/run.ts';
import type { SoakOptions } from './options.ts';
import { assertEach } from './run/counts.ts';

const PER_SECOND = 10_000;
const CUTS = 4;
/** What issue a reader has with a page begins about here: three frames of sixty a second are left out. */
const FRAME_P95_MS_MAX = 50;
const GROWTH_BYTES_MAX = 256 * 1_024 * 1_024;
const MEBIBYTE = 1_024 * 1_024;
const mib = (bytes: number) => Math.round(bytes / MEBIBYTE);

/** The console's live messages in a browser, ten thousand a second, while its connection is cut. */
export async function soakConsole({ seconds }: SoakOptions): Promise<void> {
  const seen = await watchConsole({ perSecond: PER_SECOND, seconds, cuts: CUTS, onProgress: console.log });
  const { sent, counted, misplaced, cuts, frameP50, frameP95, frameMost, memoryBefore, memoryMost } = seen;
  console.log(
    `${sent} messages in ${seconds} s, ${counted} counted in the page, ${misplaced} misplaced, the connection cut ${cuts} times; frames: ${frameP50.toFixed(1)} ms at p50, ${frameP95.toFixed(1)} at p95, ${frameMost.toFixed(0)} at most; memory ${mib(memoryBefore)} MiB, at most ${mib(memoryMost)} MiB`,
  );
  assertEach({ sent, frameMost, memoryBefore });
  assert.equal(cuts, CUTS, 'the connection was cut');
  assert.equal(misplaced, 0, 'no gap, and nothing twice');
  assert.ok(counted >= sent, 'the page keeps up');
  assert.ok(frameP95 < FRAME_P95_MS_MAX, 'the page does not freeze');
  assert.ok(memoryMost - memoryBefore <= GROWTH_BYTES_MAX, 'memory is bounded');
}
