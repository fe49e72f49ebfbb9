import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rateLimitsOf, readConfig } from '@skerry/kit';
import { type Bound, encodeRanges, QUESTION_RANGES_MAX, type Range } from '@skerry/protocol';
import { coreConfig } from '../../config.ts';
import { createTestCore } from '../../testing/core.ts';
import { Budget, RANGES_BUDGET } from './budget.ts';

const client = (key: string, isExempt = false) => ({ key, isExempt });
/** The dearest question and its answer. */
const DEAREST = 512 + 4_608 + 8_192;

/** What of a second clients take that ask the dearest question a hundred times in it each, by client. */
function flood(budget: Budget, keys: readonly string[]): Map<string, number> {
  const taken = new Map<string, number>();
  for (let round = 0; round < 100; round++)
    for (const key of keys)
      try {
        budget.check(client(key));
        budget.charge(client(key), DEAREST);
        taken.set(key, (taken.get(key) ?? 0) + DEAREST);
      } catch {}
  return taken;
}

test('dear questions of any number of strangers take a bounded part of the thread, and exempt clients are answered', () => {
  let nowMs = 0;
  const budget = new Budget(RANGES_BUDGET, () => nowMs);
  const keys = Array.from({ length: 50 }, (_, at) => `s${at}`);
  const { all } = RANGES_BUDGET;
  let sum = 0;
  for (; nowMs < 10_000; nowMs += 1_000) for (const cost of flood(budget, keys).values()) sum += cost;
  assert.ok(sum <= all.owedMax + 10 * all.perSecond + DEAREST, `${sum}`);
  flood(budget, keys);
  assert.throws(() => budget.check(client('s0')), { code: 'OVERLOADED' });
  budget.check(client('own', true));
});

test('who asks dear questions has a share, and leaves room for who asks cheap ones', () => {
  let nowMs = 0;
  const budget = new Budget(RANGES_BUDGET, () => nowMs);
  const { perClient } = RANGES_BUDGET;
  let sum = 0;
  for (; nowMs < 60_000; nowMs += 1_000) sum += flood(budget, ['dear']).get('dear') ?? 0;
  assert.ok(sum <= perClient.owedMax + 60 * perClient.perSecond + DEAREST, `${sum}`);
  flood(budget, ['dear']);
  assert.throws(() => budget.check(client('dear')), { code: 'RATE_LIMITED' });
  budget.check(client('cheap'));
  nowMs += 3_600_000;
  budget.check(client('dear'));
});

test('a stranger that goes on comparing ranges is told when to come back', async () => {
  const limits = rateLimitsOf(readConfig(coreConfig, {}));
  const perMinute = { general: 10_000, authenticated: 1, heavy: 1 };
  await using core = await createTestCore({
    settings: { limits: { ...limits, exempt: [], perMinute, now: () => 0 } },
  });
  const boundAt = (time: number): Bound => ({ time, prefix: new Uint8Array(0) });
  const question = Buffer.from(
    encodeRanges(
      Array.from(
        { length: QUESTION_RANGES_MAX },
        (_, at): Range => ({
          kind: 'fingerprint',
          lower: boundAt(at),
          upper: boundAt(at + 1),
          fingerprint: new Uint8Array(16),
        }),
      ),
    ),
  );
  const { owedMax } = RANGES_BUDGET.all;
  for (let asked = 0; asked * QUESTION_RANGES_MAX < owedMax; asked++) {
    const answer = await core.post('/sync/ranges', question, { 'content-type': 'application/octet-stream' });
    if (answer.status === 200) continue;
    assert.deepEqual([answer.status, answer.body.code], [503, 'OVERLOADED']);
    assert.ok(Number(answer.headers['retry-after']) >= 1);
    return;
  }
  assert.fail('every question was answered');
});
