import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { clientKeyOf, networkKeyOf, YieldingShares } from '@skerry/kit';
import { clientKey } from './counts.ts';

const ADDRESSES = [
  '192.0.2.7',
  '::ffff:192.0.2.7',
  '2001:db8:1:2:3:4:5:6',
  '2001:db8:1:2::1',
  '2001:db8:1::1',
  '2001:db8::1',
  '::1',
  '2001:db8:0:2:1:1:1:1',
];

describe('many clients of one customer', () => {
  test('a client of plain HTTP is of the network that it is of elsewhere', () => {
    for (const address of ADDRESSES)
      assert.equal(networkKeyOf(clientKey(address)), networkKeyOf(clientKeyOf(address)), address);
    assert.ok(networkKeyOf(clientKey('2001:db8:1:2::1')));
  });

  test('who has a /48 does not keep all others out with one connection of each /64', () => {
    const places = new YieldingShares({ total: 4, reserve: 0, perClient: 4 });
    const ended: string[] = [];
    const take = (address: string) =>
      places.take({ key: clientKey(address), isExempt: false }, () => void ended.push(address));
    for (const subnet of [1, 2, 3, 4]) assert.equal(typeof take(`2001:db8:1:${subnet}::1`), 'object');
    assert.equal(typeof take('2001:db8:2:1::1'), 'object');
    assert.deepEqual(ended, ['2001:db8:1:1::1']);
  });
});
