import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { AppError } from './errors.ts';
import { instanceAddress, parseIpv6Prefix } from './instance-address.ts';

test('the address of an instance on a node (vector of the deployed network)', () => {
  const hash = '5330dcefe1857bcd97b7b7f24d1420a7d46232d53f27be280c8a7071d88bd84e';
  assert.deepEqual(instanceAddress('2001:db8:1:2::/64', hash), {
    network: '2001:db8:1:2:3:5330:dcef:e180/124',
    host: '2001:db8:1:2:3:5330:dcef:e180',
    guest: '2001:db8:1:2:3:5330:dcef:e181',
  });
});

test('addresses are apart exactly when the first 44 bits are', () => {
  const hash = fc
    .uint8Array({ minLength: 32, maxLength: 32 })
    .map((bytes) => Buffer.from(bytes).toString('hex'));
  fc.assert(
    fc.property(hash, hash, (a, b) => {
      const same = instanceAddress('fd00:1::/64', a).guest === instanceAddress('fd00:1::/64', b).guest;
      assert.equal(same, a.slice(0, 11) === b.slice(0, 11));
    }),
  );
});

test('a prefix has one spelling; what is not a /64 is refused', () => {
  assert.equal(parseIpv6Prefix('FD00:0005:0ee:1:0::/64'), 'fd00:5:ee:1::/64');
  for (const bad of [
    '',
    'fd00::/56',
    'fd00::',
    '10.0.0.0/64',
    'fd00::1/64',
    'fd00::%lo/64',
    'fd00::/64/64',
    'x/64',
  ]) {
    assert.throws(
      () => parseIpv6Prefix(bad),
      (error) => error instanceof AppError && error.code === 'INVALID_ADDRESS',
      bad,
    );
  }
});
