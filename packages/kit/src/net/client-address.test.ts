import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { clientKeyOf, createAddressSet, findClient, networkKeyOf, rangeKeyOf } from './client-address.ts';

const trusted = createAddressSet(['10.0.0.0/8', '2001:db8:1::/48', '192.0.2.7']);

describe('address sets', () => {
  test('hold addresses and ranges of both families, also IPv4 written inside IPv6', () => {
    for (const inside of [
      '10.1.2.3',
      '::ffff:10.1.2.3',
      '2001:db8:1::9',
      '192.0.2.7',
      '2001:0DB8:0001::0009',
    ])
      assert.ok(trusted(inside), inside);
    for (const outside of ['11.0.0.1', '2001:db8:2::1', '192.0.2.8', '', 'unknown', '10.1', '0x0a.1.2.3'])
      assert.ok(!trusted(outside), outside);
  });

  test('what is no range is refused', () => {
    for (const range of ['10.0.0.0/33', '10.0.0.0/', '10.0.0.0/8/8', 'localhost', '::/129', '10/8'])
      assert.throws(() => createAddressSet([range]), { code: 'INVALID_CONFIG' }, range);
  });
});

describe('the client of a request', () => {
  const cases: [
    what: string,
    peer: string,
    header: string | undefined,
    address: string,
    isRelayed: boolean,
  ][] = [
    ['nothing between', '203.0.113.5', undefined, '203.0.113.5', false],
    ['a stranger may write what it likes', '203.0.113.5', '198.51.100.1', '203.0.113.5', true],
    ['a trusted proxy is believed', '10.0.0.1', '198.51.100.1', '198.51.100.1', false],
    ['two trusted hops', '10.0.0.1', '198.51.100.1, 10.9.9.9', '198.51.100.1', false],
    [
      'the nearest that is not trusted, whatever the client wrote before it',
      '10.0.0.1',
      '1.1.1.1, 198.51.100.1',
      '198.51.100.1',
      false,
    ],
    [
      'the trusted address that a client wrote is not reached',
      '10.0.0.1',
      '10.0.0.2, 198.51.100.1',
      '198.51.100.1',
      false,
    ],
    ['all of them trusted', '10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3', false],
    ['ports and brackets', '::ffff:10.0.0.1', '[2001:db8::5]:4711, 10.0.0.2:80', '2001:db8::5', false],
    ['malformed before a client was found: not used', '10.0.0.1', '198.51.100.1, unknown', '10.0.0.1', true],
    [
      'malformed beyond the client: not looked at',
      '10.0.0.1',
      'unknown, 198.51.100.1',
      '198.51.100.1',
      false,
    ],
    ['an empty one', '10.0.0.1', ' ', '10.0.0.1', false],
  ];
  for (const [what, peer, header, address, isRelayed] of cases)
    test(what, () => assert.deepEqual(findClient(peer, header, trusted), { address, isRelayed }));

  test('any header: an answer, and never another than the peer for a peer that is not trusted', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 300 }), (header) => {
        assert.equal(findClient('203.0.113.5', header, trusted).address, '203.0.113.5');
        assert.notEqual(findClient('10.0.0.1', header, trusted).address, '');
      }),
    );
    const hops = fc.array(fc.oneof(fc.ipV4(), fc.ipV6()), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(hops, (list) => {
        const { address } = findClient('10.0.0.1', [...list, '198.51.100.1', '10.0.0.2'].join(', '), trusted);
        assert.equal(address, '198.51.100.1');
      }),
    );
  });
});

test('one client: an IPv4 address, or the /64 of an IPv6 one', () => {
  assert.equal(clientKeyOf('198.51.100.1'), '198.51.100.1');
  assert.equal(clientKeyOf('::ffff:198.51.100.1'), '198.51.100.1');
  assert.equal(clientKeyOf('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2::/64');
  assert.equal(clientKeyOf('2001:db8:1:2:ffff::1'), clientKeyOf('2001:db8:1:2::'));
  assert.notEqual(clientKeyOf('2001:db8:1:2::1'), clientKeyOf('2001:db8:1:3::1'));
  assert.equal(clientKeyOf('fe80::1%eth0'), 'fe80::/64');
  assert.equal(clientKeyOf('garbage'), 'unknown');
});

test('the network of a client: the /48 of a /64, and none of any other', () => {
  const group = fc.oneof(fc.constantFrom(0, 1), fc.nat(0xffff));
  const groups = fc.array(group, { minLength: 8, maxLength: 8 }).filter(([first]) => first !== 0);
  const addressOf = (of: readonly number[]) => of.map((one) => one.toString(16)).join(':');
  const networkOf = (of: readonly number[]) => networkKeyOf(clientKeyOf(addressOf(of)));
  fc.assert(
    fc.property(groups, groups, (one, other) => {
      const near = [...one.slice(0, 3), ...other.slice(3)];
      assert.equal(networkOf(near), networkOf(one));
      assert.notEqual(networkOf(one), undefined);
      const isSame = addressOf(one.slice(0, 3)) === addressOf(other.slice(0, 3));
      assert.equal(networkOf(one) === networkOf(other), isSame);
    }),
  );
  assert.equal(networkKeyOf(clientKeyOf('::1')), networkKeyOf(clientKeyOf('0:0:0:5::')));
  for (const key of ['198.51.100.1', 'unknown', '', '0x12'])
    assert.equal(networkKeyOf(clientKeyOf(key)) ?? networkKeyOf(key), undefined);
});

test('a range is the /24 of an IPv4 client and the /48 of an IPv6 one', () => {
  const rangeOf = (address: string) => rangeKeyOf(clientKeyOf(address));
  assert.equal(rangeOf('198.51.100.7'), '198.51.100.0/24');
  assert.equal(rangeOf('::ffff:198.51.100.9'), rangeOf('198.51.100.7'));
  assert.notEqual(rangeOf('198.51.101.7'), rangeOf('198.51.100.7'));
  assert.equal(rangeOf('2001:db8:1:2::3'), networkKeyOf(clientKeyOf('2001:db8:1:2::3')));
  assert.equal(rangeKeyOf('unknown'), undefined);
});
