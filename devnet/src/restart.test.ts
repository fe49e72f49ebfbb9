import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideRestart, RESTART_LIMITS } from './restart.ts';

const exit = { code: 1, signal: null, servedMs: undefined, hasServed: true, failures: 0 } as const;
const decide = (changes: Partial<Parameters<typeof decideRestart>[0]>) =>
  decideRestart({ ...exit, ...changes }, RESTART_LIMITS, 0);

test('waits longer after each short life, up to a limit', () => {
  const waits = [0, 1, 2, 5, 8].map((failures) => decide({ failures }));
  assert.deepEqual(waits, [
    { restartAfterMs: 200, failures: 1, isFailing: false },
    { restartAfterMs: 400, failures: 2, isFailing: false },
    { restartAfterMs: 800, failures: 3, isFailing: false },
    { restartAfterMs: 6400, failures: 6, isFailing: false },
    { restartAfterMs: 30_000, failures: 9, isFailing: false },
  ]);
});

test('a long life forgets earlier failures', () => {
  assert.deepEqual(decide({ servedMs: 30_000, failures: 9 }), {
    restartAfterMs: 200,
    failures: 1,
    isFailing: false,
  });
  assert.deepEqual(decide({ servedMs: 29_999, failures: 3 }), {
    restartAfterMs: 1600,
    failures: 4,
    isFailing: false,
  });
});

test('says when one that never served should not be waited for, and tries on', () => {
  const isFailing = (changes: Parameters<typeof decide>[0]) => {
    const decision = decide(changes);
    assert.ok('restartAfterMs' in decision);
    return decision.isFailing;
  };
  assert.deepEqual(
    [3, 4, 1_000].map((failures) => isFailing({ failures, hasServed: false })),
    [false, true, true],
  );
  assert.equal(isFailing({ failures: 1_000 }), false);
});

test('a wrong setting is not tried again; the same exit code after it served is', () => {
  assert.deepEqual(decide({ code: 2 }), { giveUp: 'a setting is wrong' });
  assert.ok('restartAfterMs' in decide({ code: 2, servedMs: 5 }));
});
