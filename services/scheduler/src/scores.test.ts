import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CoreClient } from '@skerry/client';
import { serving } from '@skerry/kit/testing/serving';
import { SCORES_AGE_MAX_MS } from '@skerry/protocol';
import { decideTrust, isMeasured, scoreOf } from './planning/trust.ts';
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

test('of each node the publisher counts that measured it in more hours: one that began lately, or was wrong for a while, changes nothing', async () => {
  const [both, lower, alone, expired] = ['b', 'c', 'd', 'e'].map((digit) => digit.repeat(64)) as [
    string,
    string,
    string,
    string,
  ];
  const rowsOf = (rows: Record<string, readonly [score: number, hours: number]>) => ({
    crn: Object.entries(rows).map(([node_id, [total_score, record_count]]) => ({
      ...{ node_id, total_score, measurements: { record_count } },
    })),
  });
  const OLD_MS = NOW_MS - SCORES_AGE_MAX_MS - 1;
  const long = { [both]: [0.75, 2_000], [lower]: [0.5, 2_000], [alone]: [0.75, 2_000] } as const;
  const publishedBy: Record<
    string,
    { time: number; measuredMs: number; scores: unknown; settings?: object }
  > = {
    '0x01': { time: NOW_MS / 1000 - 60, measuredMs: NOW_MS - 60_000, scores: rowsOf(long) },
    // Newer, of few hours: of one node a lower score, of one a higher.
    '0x02': {
      time: NOW_MS / 1000,
      measuredMs: NOW_MS,
      scores: rowsOf({ [both]: [0.1, 3], [lower]: [1, 3] }),
    },
    '0x03': { time: NOW_MS / 1000, measuredMs: NOW_MS, scores: rowsOf({}) },
    // Published again today.
    '0x04': {
      ...{ time: NOW_MS / 1000, measuredMs: OLD_MS },
      scores: rowsOf({ [both]: [1, 9_999], [expired]: [1, 9_999] }),
    },
    // More hours, which are shorter.
    '0x05': {
      ...{ time: NOW_MS / 1000, measuredMs: NOW_MS, settings: { hour_seconds: 60 } },
      scores: rowsOf({ [both]: [0.1, 9_999] }),
    },
  };
  const all = Object.keys(publishedBy);
  await using core = await readFrom((address) => {
    const { time, measuredMs, scores: told, settings } = publishedBy[address]!;
    const content = { measured_at: new Date(measuredMs).toISOString(), scores: told, settings };
    return { ...page, posts: [{ address, item_hash: 'a', time, content }] };
  });
  const before = await core.read('0x01');
  for (const publishers of [all, all.toReversed()]) {
    const read = await core.read(...publishers);
    // Room and score of a node that one of them measured for long are as if the others were not there.
    for (const nodeId of [both, lower, alone]) assert.deepEqual(read.get(nodeId), before.get(nodeId));
    assert.equal(scoreOf(read.get(expired) ?? null), null);
    assert.equal(read.get(expired)?.outdatedMs, OLD_MS);
    assert.equal(outdatedMsOf(read), null);
  }
  assert.equal(outdatedMsOf(await core.read('0x03', '0x04')), OLD_MS);
  assert.equal(outdatedMsOf(await core.read('0x03')), null);
});
