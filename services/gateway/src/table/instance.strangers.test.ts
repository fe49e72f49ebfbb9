import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostnameOf, instanceAddress } from '@skerry/protocol';
import fc from 'fast-check';
import { isReachableAddress, isRoutable, parseInstance } from './instance.ts';
import { InstanceTable } from './table.ts';
import { explainWhy } from './why.ts';

const HASH = '5330dcefe1857bcd97b7b7f24d1420a7d46232d53f27be280c8a7071d88bd84e';
const strict = { allowLocal: false, allowPrivate: false };
const viewAt = (ipv6: string) => ({
  instance_id: HASH,
  created_at: 1,
  ipv6,
  desired: 'running',
  phase: 'running',
  reason: null,
});
const routes = (prefix: string, policy = strict) =>
  isRoutable(parseInstance(viewAt(instanceAddress(prefix, HASH).guest), policy));

test('H3: a gateway leads to no network that is special, and to a private one only where its operator says so', () => {
  for (const prefix of [
    '::/64',
    '2002:7f00:1::/64',
    '64:ff9b:1:7f00::/64',
    '64:ff9b::/64',
    'fec0::/64',
    '2001::/64',
  ])
    for (const policy of [strict, { ...strict, allowPrivate: true }])
      assert.equal(routes(prefix, policy), false, prefix);
  for (const prefix of ['fd00::/64', '2001:db8::/64']) {
    assert.equal(routes(prefix), false, prefix);
    assert.equal(routes(prefix, { ...strict, allowPrivate: true }), true, prefix);
  }
  assert.equal(routes('2a00:1:2:3::/64'), true);
});

test('H3: an address that is not the one of the instance in its node’s network is not routed, and why says so', () => {
  for (const ipv6 of [
    '2a00:1:2:3::1',
    '2a00:1:2:3:ffff::1',
    '2a00:1:2:3:3:aaaa:aaaa:aaa1',
    '2606:4700:4700::1111',
  ]) {
    const instance = parseInstance(viewAt(ipv6), strict);
    assert.deepEqual([instance.ipv6, instance.refusedIpv6, isRoutable(instance)], [null, ipv6, false]);
    const table = new InstanceTable('skerry.test');
    table.put(instance);
    const why = explainWhy(table, { subdomain: hostnameOf(instance.hash), hash: undefined }, [], undefined);
    assert.equal(why.missing?.code, 'INSTANCE_NOT_ROUTED');
    assert.match(why.missing?.message ?? '', /is not the one its hash gives in a routable network/);
  }
});

test('H3: no text is taken for an address that is routed', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.ipV6(), fc.ipV4()), (text) => {
      assert.equal(isReachableAddress(text, HASH, strict), false);
    }),
  );
});
