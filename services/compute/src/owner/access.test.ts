import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mayOperate } from './access.ts';

const owner = `0x${'1'.repeat(40)}`;
const other = `0x${'2'.repeat(40)}`;

test('delegates: an entry permits what every list of it fits, and one that is not understood nothing', () => {
  const may = (entry: unknown) => mayOperate([entry], other, 'INSTANCE');
  for (const entry of [
    { address: other },
    { address: other, types: [] },
    { address: other.toUpperCase().replace('0X', '0x'), types: ['INSTANCE', 'POST'] },
  ])
    assert.equal(may(entry), true, JSON.stringify(entry));
  for (const entry of [
    { address: owner },
    { address: other, types: ['POST'] },
    { address: other, channels: ['x'] },
    { address: other, chain: 'SOL' },
    { address: other, types: 'INSTANCE' },
    { address: other, chain: 1 },
    { address: other, instances: ['a'.repeat(64)] },
    { address: other, post_types: 'note' },
    { address: other, aggregate_keys: [1] },
    null,
    1,
  ])
    assert.equal(may(entry), false, JSON.stringify(entry));
  assert.equal(mayOperate(undefined, other, 'INSTANCE'), false);
});
