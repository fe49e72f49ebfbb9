import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openHttpFuzz } from './testing/suite/http-fuzz.ts';
import { TsDataPlane } from './ts/plane.ts';

test('instances see nothing but sound requests, whatever clients send', async () => {
  await using fuzz = await openHttpFuzz((options) => new TsDataPlane(options), 7);
  // Where the machine is busy, some come too late to reach an instance.
  for (let batch = 0; batch < 10 || fuzz.reached <= 50; batch++) await fuzz.run(100);
  assert.deepEqual(fuzz.problems, []);
});
