import assert from 'node:assert/strict';
import { test } from 'node:test';
import { watchConsole } from './console/run.ts';

/** `npm run soak -- console`, briefly. */
test('live messages in a browser have no gap and nothing twice, though the connection is cut', async () => {
  const { sent, counted, misplaced, cuts } = await watchConsole({ perSecond: 1_000, seconds: 3, cuts: 1 });
  assert.equal(cuts, 1);
  assert.equal(misplaced, 0);
  assert.ok(sent > 1_000 && counted >= sent, `${counted} of ${sent}`);
});
