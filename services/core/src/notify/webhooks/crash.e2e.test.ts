import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crashWhileDelivering } from './testing/crash.ts';

/** SKERRY_TEST_KILLS in the environment makes a soak of it. */
const KILLS = Number(process.env.SKERRY_TEST_KILLS ?? 10);

test(`kill -9 of the core node ${KILLS} times while it delivers: every event arrived, under one id`, async (t) => {
  const { events, attempts, missing, confused } = await crashWhileDelivering(KILLS);
  t.diagnostic(`${events} events, ${attempts} attempts over ${KILLS} kills, ${missing.length} missing`);
  assert.ok(events > KILLS * 40);
  assert.deepEqual([missing, confused], [[], []]);
});
