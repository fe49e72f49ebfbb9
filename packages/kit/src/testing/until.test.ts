import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from './until.ts';

test('what is waited for is looked at until it fits, and given', async () => {
  let looks = 0;
  assert.equal(await until('the third look', () => ++looks === 3 && 'here'), 'here');
  assert.equal(looks, 3);
  const counts = { failed: 0 };
  const seen = await until(
    'two failures',
    async () => ({ failed: counts.failed++ }),
    ({ failed }) => failed >= 2,
  );
  assert.deepEqual(seen, { failed: 2 });
});

test('what does not come is told with what was seen last, and a look that fails with its own words', async () => {
  const never = until(
    'a guest',
    () => ({ guests: 0 }),
    ({ guests }) => guests > 0,
    { limitMs: 1 },
  );
  await assert.rejects(never, /in vain for: a guest; seen last: \{ guests: 0 \}$/);
  const fails = until('a guest', () => {
    throw new Error('the door is locked');
  });
  await assert.rejects(fails, /^Error: the door is locked$/);
});
