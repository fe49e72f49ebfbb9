import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answering } from '../testing/answering.ts';
import { readAggregate } from './aggregate.ts';

const OWNER = '0x0000000000000000000000000000000000000001';

test('an aggregate is read within the limit of who asks, and refused beyond it', async () => {
  const answer = JSON.stringify({ address: OWNER, data: { key: { text: 'x'.repeat(1_000) } }, info: {} });
  await using node = await answering({ [`/api/v0/aggregates/${OWNER}.json`]: [answer] });
  const read = (bytesMax: number) => readAggregate(node.url, OWNER, 'key', { bytesMax });
  assert.deepEqual(await read(answer.length), { text: 'x'.repeat(1_000) });
  await assert.rejects(read(answer.length - 1), { code: 'UNEXPECTED_ANSWER' });
});
