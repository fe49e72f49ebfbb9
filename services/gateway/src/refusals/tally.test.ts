import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { networkOf } from './network.ts';
import { Tally } from './tally.ts';

const refusal = (network: string | null, count = 1) =>
  ({ network, count, protocol: 'tls', reason: 'unknown_name' }) as const;

describe('a tally of refusals', () => {
  test('names the heaviest networks, and sums up the rest', () => {
    const tally = new Tally();
    assert.ok(tally.isEmpty);
    tally.add(refusal('192.0.2.0/24', 2));
    tally.add(refusal('198.51.100.0/24', 5));
    tally.add({ network: '198.51.100.0/24', count: 1, protocol: 'http', reason: 'invalid_host' });
    tally.add(refusal(null, 7));
    const { accounts, others } = tally.heaviest(1);
    assert.deepEqual(accounts, [
      {
        network: '198.51.100.0/24',
        count: 6,
        reasons: new Map([
          ['tls_unknown_name', 5],
          ['http_invalid_host', 1],
        ]),
      },
    ]);
    assert.deepEqual(others, { count: 9, reasons: new Map([['tls_unknown_name', 9]]) });
  });

  test('keeps a bounded number of networks, the heavy ones among them, and loses no refusal', () => {
    const tally = new Tally();
    const strangers = 100_000;
    for (let at = 0; at < strangers; at++) {
      tally.add(refusal(`2001:db8:${at.toString(16)}::/48`));
      if (at % 10 === 0) tally.add(refusal('192.0.2.0/24'));
    }
    const { accounts, others } = tally.heaviest(strangers);
    assert.ok(accounts.length <= 2048, `${accounts.length}`);
    assert.deepEqual([accounts[0]!.network, accounts[0]!.count], ['192.0.2.0/24', strangers / 10]);
    const sum = accounts.reduce((total, { count }) => total + count, others.count);
    assert.equal(sum, strangers + strangers / 10);
  });
});

test('the network of an address is in one spelling', () => {
  for (const [address, network] of [
    ['192.0.2.77', '192.0.2.0/24'],
    ['::ffff:192.0.2.77', '192.0.2.0/24'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1::/48'],
    ['2001:0DB8:0:0::1', '2001:db8::/48'],
    ['fe80::1%eth0', 'fe80::/48'],
    ['::1', '::/48'],
    ['', null],
    ['nobody', null],
  ] as const)
    assert.equal(networkOf(address), network, address);
});
