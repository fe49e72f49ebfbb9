import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CoreClient } from '@skerry/client';
import { serving } from '@skerry/kit/testing/serving';
import { decideTrust, isMeasured, SCORES_AGE_MAX_MS, scoreOf } from './planning/trust.ts';
import { outdatedMsOf, readScores } from './scores.ts';

const id = 'a'.repeat(64);
const scores = { crn: [{ node_id: id, total_score: 0.5 }] };
const page = { pagination_per_page: 1, next_cursor: null };
const NOW_MS = Date.parse('2026-06-01T00:00:00Z');

/** Reads what a core node answers, whom it is asked about. */
async function readFrom(answerOf: (addresses: string) => unknown) {
  const served = await serving(({ url }, response) => {
    const { searchParams } = new URL(url!, 'http://core');
    response.end(JSON.stringify(answerOf(searchParams.get('addresses')!)));
  });
  const core = new CoreClient({ url: served.url });
  return {
    read: (...publishers: string[]) => readScores(core, publishers, NOW_MS, new AbortController().signal),
    [Symbol.asyncDispose]: () => served[Symbol.asyncDispose](),
  };
}

test('the newest scores that were published; an answer in another form is refused', async () => {
  const post = { address: '0x00', item_hash: 'a', time: NOW_MS / 1000, content: { scores } };
  let answer: unknown = { ...page, posts: [post] };
  await using core = await readFrom(() => answer);
  assert.deepEqual([...(await core.read('0x00'))], [[id, { score: 0.5, hours: 1 }]]);
  answer = { ...page, posts: [] };
  assert.equal((await core.read('0x00')).size, 0);
  for (answer of [null, { ...page }, { ...page, posts: [{ content: { scores } }] }])
    await assert.rejects(core.read('0x00'), { code: 'UNEXPECTED_ANSWER' });
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
    return (await core.read('0x00')).get(id)!;
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
  assert.equal(isMeasured((await core.read('0x00')).get(id)!), false);
  time = last / 1000;
  assert.equal(isMeasured((await core.read('0x00')).get(id)!), true);
});

test('one more publisher takes no node away from another: of each node the newest post that has it counts', async () => {
  const [both, older, expired] = ['b', 'c', 'd'].map((digit) => digit.repeat(64)) as [string, string, string];
  const rowsOf = (rows: Record<string, number>) => ({
    crn: Object.entries(rows).map(([node_id, total_score]) => ({
      ...{ node_id, total_score },
      measurements: { record_count: 9_999 },
    })),
  });
  const OLD_MS = NOW_MS - SCORES_AGE_MAX_MS - 1;
  const publishedBy: Record<string, { time: number; measuredMs: number; scores: unknown }> = {
    '0x01': { time: NOW_MS / 1000 - 60, measuredMs: NOW_MS, scores: rowsOf({ [both]: 0.5, [older]: 0.75 }) },
    '0x02': { time: NOW_MS / 1000 - 30, measuredMs: NOW_MS, scores: rowsOf({ [both]: 0.25 }) },
    '0x03': { time: NOW_MS / 1000 - 10, measuredMs: NOW_MS, scores: rowsOf({}) },
    // Published again today.
    '0x04': { time: NOW_MS / 1000, measuredMs: OLD_MS, scores: rowsOf({ [both]: 1, [expired]: 1 }) },
  };
  const all = Object.keys(publishedBy);
  await using core = await readFrom((addresses) => {
    const posts = addresses.split(',').map((address) => {
      const { time, measuredMs, scores: told } = publishedBy[address]!;
      const content = { measured_at: new Date(measuredMs).toISOString(), scores: told };
      return { address, item_hash: 'a', time, content };
    });
    return { ...page, posts: posts.toSorted((a, b) => b.time - a.time).slice(0, 1) };
  });
  for (const publishers of [all, all.toReversed()]) {
    const read = await core.read(...publishers);
    const scoreIn = (nodeId: string) => scoreOf(read.get(nodeId) ?? null);
    assert.deepEqual([both, older, expired].map(scoreIn), [0.25, 0.75, null]);
    // With the hours of the same post.
    assert.ok(read.get(older)!.hours > read.get(both)!.hours);
    assert.equal(read.get(expired)?.outdatedMs, OLD_MS);
    assert.equal(outdatedMsOf(read), null);
  }
  assert.equal(outdatedMsOf(await core.read('0x03', '0x04')), OLD_MS);
  assert.equal(outdatedMsOf(await core.read('0x03')), null);
});
