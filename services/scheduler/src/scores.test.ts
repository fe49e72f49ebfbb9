import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CoreClient } from '@skerry/client';
import { serving } from '@skerry/kit/testing/serving';
import { readScores } from './scores.ts';

test('the newest scores that were published; an answer in another form is refused', async () => {
  const id = 'a'.repeat(64);
  const scores = { crn: [{ node_id: id, total_score: 0.5 }] };
  const page = { pagination_per_page: 1, next_cursor: null };
  const post = { address: '0x00', item_hash: 'a', content: { scores } };
  let answer: unknown = { ...page, posts: [post] };
  await using served = await serving((_request, response) => response.end(JSON.stringify(answer)));
  const core = new CoreClient({ url: served.url });
  const read = () => readScores(core, ['0x00'], new AbortController().signal);
  assert.deepEqual([...(await read())], [[id, { score: 0.5, hours: 1 }]]);
  answer = { ...page, posts: [] };
  assert.equal((await read()).size, 0);
  for (answer of [null, { ...page }, { ...page, posts: [{ content: { scores } }] }])
    await assert.rejects(read(), { code: 'UNEXPECTED_ANSWER' });
});
