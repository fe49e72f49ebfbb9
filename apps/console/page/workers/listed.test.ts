import assert from 'node:assert/strict';
import { test } from 'node:test';
import { judgeMachines } from './listed.ts';

const NOWHERE = 'http://127.0.0.1:9';
const instance_id = 'a'.repeat(64);

test('a machine that cannot be checked is the word of the core node, and hides no other', async () => {
  const rows = [
    { instance_id, shared: [null] },
    { instance_id, shared: ['{}'] },
    { instance_id },
    { instance_id, shared: [null], sources: [] },
  ];
  const judged = await judgeMachines(NOWHERE, rows, []);
  assert.deepEqual(
    judged.map(({ kind }) => kind),
    ['said', 'wrong', 'said', 'said'],
  );
  assert.match(judged[0]!.why, /^not checked: .*\(UPSTREAM_UNAVAILABLE\)$/);
  assert.equal(judged[3]!.why, 'lacking a message that the core node does not give');
});
