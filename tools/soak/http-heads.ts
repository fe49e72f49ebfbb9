import assert from 'node:assert/strict';
import { openHttpFuzz } from '../../services/gateway/src/dataplane/testing/suite/http-fuzz.ts';
import { TsDataPlane } from '../../services/gateway/src/dataplane/ts/plane.ts';
import type { SoakOptions } from './options.ts';
import { assertEach } from './run/counts.ts';

const BATCH = 100;

/** Damaged HTTP requests: each is answered or its connection ends, and instances see nothing but sound requests. */
export async function soakHttpHeads({ seconds, seed }: SoakOptions): Promise<void> {
  await using fuzz = await openHttpFuzz((options) => new TsDataPlane(options), seed);
  let count = 0;
  for (const end = performance.now() + seconds * 1000; performance.now() < end; count += BATCH)
    await fuzz.run(BATCH);
  assert.deepEqual(fuzz.problems, []);
  console.log(`${count} requests; ${fuzz.reached} reached an instance, all of them sound`);
  assertEach({ reached: fuzz.reached });
}
