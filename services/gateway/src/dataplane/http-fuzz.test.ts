import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openHttpFuzz } from './testing/suite/http-fuzz.ts';
import { TsDataPlane } from './ts/plane.ts';

test('instances see nothing but sound requests, whatever clients send', { timeout: 60_000 }, async () => {
  await using fuzz = await openHttpFuzz((options) => new TsDataPlane(options), 7);
  for (let batch = 0; batch < 10; batch++) await fuzz.run(100);
  assert.deepEqual(fuzz.problems, []);
  assert.ok(fuzz.reached > 50, `${fuzz.reached} reached an instance`);
});
