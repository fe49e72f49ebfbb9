import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DIAGNOSTIC_VM, programAddress } from './diagnostic.ts';

test('where the diagnostic program is: the network of any address of the node', () => {
  for (const node of ['2001:db8:1:2::5', '2001:db8:1:2::'])
    assert.equal(programAddress(node, DIAGNOSTIC_VM), '2001:db8:1:2:1:63fa:f8b5:db11');
  assert.throws(() => programAddress('2001:db8::', 'x'), { code: 'INVALID_HASH' });
});
