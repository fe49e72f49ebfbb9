import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideRestart, RESTART_LIMITS } from './restart.ts';

test('F5: one whose failure may pass is started again for ever, and never later than the named maximum', () => {
  for (const hasServed of [true, false])
    for (const end of [
      { code: 1, signal: null },
      { code: null, signal: 'SIGKILL' },
    ] as const)
      for (let failures = 0, lives = 0; lives < 10_000; lives++) {
        const decision = decideRestart({ ...end, servedMs: undefined, hasServed, failures }, RESTART_LIMITS);
        assert.ok('restartAfterMs' in decision, `life ${lives}`);
        assert.ok(decision.restartAfterMs <= RESTART_LIMITS.maxMs);
        failures = decision.failures;
      }
});
