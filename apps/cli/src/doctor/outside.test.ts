import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serving } from '@skerry/kit/testing/serving';
import { canHoldAddresses, randomPrefix } from '../scheduler/testing/nodes.ts';
import { tryPrefix } from './outside.ts';

const skip = canHoldAddresses ? false : 'needs root on Linux';

test('a prefix whose address is new is tried twice before nobody gets through to it', { skip }, async () => {
  const told = ['NO_ANSWER', 'REACHED', 'NO_ANSWER', 'NO_ANSWER', 'REACHED'];
  let asked = 0;
  await using core = await serving((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ verdict: told[asked++], seen_as: '203.0.113.9' }));
  });
  const prefix = randomPrefix();
  assert.equal((await tryPrefix(core.url, prefix, false)).verdict, 'REACHED');
  assert.equal((await tryPrefix(core.url, prefix, false)).verdict, 'NO_ANSWER');
  assert.equal(asked, 4);
});
