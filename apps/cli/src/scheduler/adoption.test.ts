import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SaidAllocation } from '@skerry/client';
import { countsBy, decideAdoption } from './adoption.ts';

const TERMS = { from: 'old', by: 'new' };
const idOf = (digit: string) => digit.repeat(64);

/** @param at when it was decided, by its own word, milliseconds */
function say(
  sender: string,
  nodeId: string | null,
  at: number,
  more: Partial<SaidAllocation> = {},
): SaidAllocation {
  return {
    ...{ itemHash: `${sender}-${nodeId}-${at}`, sender, time: at / 1000 },
    content: {
      instance_id: idOf('a'),
      node_id: nodeId,
      node_address: nodeId && `0x${nodeId}`,
      ipv6: nodeId === null ? '' : `fd00::${nodeId}`,
      reason: null,
      decided_at_ms: at,
    },
    ...more,
  };
}

const decide = (now: string | null, ...said: SaidAllocation[]) =>
  decideAdoption([{ instance_id: idOf('a'), node_id: now }], new Map([[idOf('a'), said]]), TERMS);
const datesOf = ({ toSign }: ReturnType<typeof decide>) => toSign.map((one) => one.decided_at_ms);

test('of the old key counts what was there in time, whatever date it has', () => {
  assert.ok(countsBy(say('old', '1', 5_000), 'old', 5));
  assert.ok(!countsBy(say('old', '1', 6_000), 'old', 5));
  // Dated before the leak, and first seen an hour later.
  assert.ok(!countsBy(say('old', '1', 5_000, { notedMs: 3_605_000 }), 'old', 5));
  assert.ok(countsBy(say('other', '1', 6_000), 'old', 5));
});

test('the last word of the old key is signed again with its own date, once', () => {
  const [first, last] = [say('old', '1', 1_000), say('old', '2', 2_000)];
  assert.deepEqual(decide('2', first, last).toSign, [last.content]);
  const again = decide('2', first, last, { ...last, sender: 'new', itemHash: 'z' });
  assert.deepEqual([again.toSign, again.adoptedBefore, again.ofOthers], [[], 1, 0]);
});

test("where another scheduler's word counts, nothing is signed", () => {
  for (const sender of ['other', 'new']) {
    const { toSign, ofOthers, adoptedBefore } = decide('2', say('old', '1', 1_000), say(sender, '2', 2_000));
    assert.deepEqual([toSign, ofOthers + adoptedBefore], [[], 1]);
  }
});

test('an instance that waits keeps its name: the last placement with an address is signed, too', () => {
  assert.deepEqual(datesOf(decide(null, say('old', '1', 1_000), say('old', null, 2_000))), [1_000, 2_000]);
  assert.deepEqual(datesOf(decide(null, say('old', null, 2_000))), [2_000]);
  assert.deepEqual(datesOf(decide(null, say('old', '1', 1_000), say('other', null, 2_000))), [1_000]);
  assert.deepEqual(datesOf(decide(null, say('other', '1', 1_000), say('old', null, 2_000))), [2_000]);
});

test('what is elsewhere now, and what nobody placed in time, is named', () => {
  const moved = decide('9', say('old', '1', 1_000));
  assert.deepEqual(moved.differences, [{ instance_id: idOf('a'), node_id: '1', node_id_now: '9' }]);
  assert.deepEqual(decide('9').unplaced, [idOf('a')]);
});
