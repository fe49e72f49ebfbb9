import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideRestart, RESTART_LIMITS } from './restart.ts';

const exit = { code: 1, signal: null, servedMs: undefined, hasServed: true, failures: 0 } as const;
const decide = (changes: Partial<Parameters<typeof decideRestart>[0]>) =>
  decideRestart({ ...exit, ...changes }, RESTART_LIMITS, 0);

test('waits longer after each short life, up to a limit', () => {
  const waits = [0, 1, 2, 5, 8].map((failures) => decide({ failures }));
  assert.deepEqual(waits, [
    { restartAfterMs: 200, failures: 1 },
    { restartAfterMs: 400, failures: 2 },
    { restartAfterMs: 800, failures: 3 },
    { restartAfterMs: 6400, failures: 6 },
    { restartAfterMs: 10_000, failures: 9 },
  ]);
});

test('a long life forgets earlier failures', () => {
  assert.deepEqual(decide({ servedMs: 30_000, failures: 9 }), { restartAfterMs: 200, failures: 1 });
  assert.deepEqual(decide({ servedMs: 29_999, failures: 3 }), { restartAfterMs: 1600, failures: 4 });
});

test('gives up after too many short lives, sooner where it never served', () => {
  assert.ok('giveUp' in decide({ failures: 10 }));
  assert.ok('restartAfterMs' in decide({ failures: 9 }));
  assert.ok('giveUp' in decide({ failures: 4, hasServed: false }));
  assert.ok('restartAfterMs' in decide({ failures: 3, hasServed: false }));
});

test('a wrong setting is not tried again; the same exit code after it served is', () => {
  assert.deepEqual(decide({ code: 2 }), { giveUp: 'a setting is wrong' });
  assert.ok('restartAfterMs' in decide({ code: 2, servedMs: 5 }));
});
