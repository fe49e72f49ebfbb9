import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CoreClient } from '@skerry/client';
import { serving } from '@skerry/kit/testing/serving';
import { decideTrust, isMeasured, SCORES_AGE_MAX_MS, scoreOf } from './planning/trust.ts';
import { readScores } from './scores.ts';

const id = 'a'.repeat(64);
const scores = { crn: [{ node_id: id, total_score: 0.5 }] };
const page = { pagination_per_page: 1, next_cursor: null };
const NOW_MS = Date.parse('2026-06-01T00:00:00Z');

/** Reads what a core node answers. */
async function readFrom(answerOf: () => unknown) {
  const served = await serving((_request, response) => response.end(JSON.stringify(answerOf())));
  const core = new CoreClient({ url: served.url });
  return {
    read: () => readScores(core, ['0x00'], NOW_MS, new AbortController().signal),
    [Symbol.asyncDispose]: () => served[Symbol.asyncDispose](),
  };
}

test('the newest scores that were published; an answer in another form is refused', async () => {
  const post = { address: '0x00', item_hash: 'a', time: NOW_MS / 1000, content: { scores } };
  let answer: unknown = { ...page, posts: [post] };
  await using core = await readFrom(() => answer);
  assert.deepEqual([...(await core.read())], [[id, { score: 0.5, hours: 1 }]]);
  answer = { ...page, posts: [] };
  assert.equal((await core.read()).size, 0);
  for (answer of [null, { ...page }, { ...page, posts: [{ content: { scores } }] }])
    await assert.rejects(core.read(), { code: 'UNEXPECTED_ANSWER' });
});

test('scores of measurements that are too old make no node a measured one, and every explanation says so', async () => {
  let content: object = {};
  let time = 0;
  await using core = await readFrom(() => ({
    ...page,
    posts: [{ address: '0x00', item_hash: 'a', time, content: { scores, ...content } }],
  }));
  const earnedAt = async (measuredMs: number, publishedMs = NOW_MS) => {
    content = { measured_at: new Date(measuredMs).toISOString() };
    time = publishedMs / 1000;
    return (await core.read()).get(id)!;
  };
  const last = NOW_MS - SCORES_AGE_MAX_MS;
  const [fresh, old] = [await earnedAt(last), await earnedAt(last - 1)];
  assert.deepEqual([fresh, isMeasured(fresh), scoreOf(fresh)], [{ score: 0.5, hours: 1 }, true, 0.5]);
  assert.deepEqual([isMeasured(old), scoreOf(old)], [false, null]);
  const words = /measurements up to 2026-05-24T23:59:59.999Z, older than 7 days, and counts no longer/;
  for (const level of ['listed', 'measured', 'all'] as const) {
    const { against, words: said } = decideTrust({ level, isListed: true, earned: old });
    assert.equal(against, null);
    assert.match(said, words);
  }
  const { against } = decideTrust({ level: 'measured', isListed: false, earned: old });
  assert.equal(against?.code, 'NODE_NOT_MEASURED');
  assert.match(against!.message, words);
  // Of scores that do not say when they were measured, the date of their message.
  content = {};
  time = last / 1000 - 1;
  assert.equal(isMeasured((await core.read()).get(id)!), false);
  time = last / 1000;
  assert.equal(isMeasured((await core.read()).get(id)!), true);
});
