import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Context } from '../context.ts';
import { findNodeId, matchNodeId } from './node-id.ts';

const ONE = `1234${'a'.repeat(60)}`;
const OTHER = `1235${'b'.repeat(60)}`;

test('a node is found by the start of its id', () => {
  assert.equal(matchNodeId([ONE, OTHER, ONE], '1234A'), ONE);
  assert.throws(() => matchNodeId([ONE, OTHER], '12'), { code: 'AMBIGUOUS_NAME' });
  assert.throws(() => matchNodeId([ONE, OTHER], '99'), { code: 'NODE_NOT_FOUND' });
});

test('what is no id is refused before anybody is asked, and what is one is said', async () => {
  const nobody = {} as Context;
  assert.equal(await findNodeId(nobody, [], ONE.toUpperCase()), ONE);
  for (const text of ['zzzz', '123', '', `${ONE}0`])
    await assert.rejects(findNodeId(nobody, [], text), {
      code: 'INVALID_HASH',
      message: `${JSON.stringify(text)} is no id of a node: 64 hexadecimal digits, or the first four or more`,
    });
});
