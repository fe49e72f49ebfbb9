import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { createReach, isPrivateIpv6, isPublicAddress } from './reach.ts';

const REFUSED: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.1', '127.255.255.254', '::1'],
  unspecified: ['0.0.0.0', '0.1.2.3', '::'],
  private: ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', 'fc00::1', 'fd12:3456::1'],
  'link-local': ['169.254.1.1', 'fe80::1', 'fe80::1%eth0', 'fec0::1'],
  metadata: ['169.254.169.254', '100.100.100.200', '192.0.0.192', 'fd00:ec2::254'],
  'carrier-grade NAT': ['100.64.0.1', '100.127.255.255'],
  multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1', 'ff0e::1'],
  'reserved, benchmark, broadcast': ['240.0.0.1', '255.255.255.255', '198.18.0.1', '198.19.255.255'],
  documentation: ['192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1', '3fff::1'],
  'IPv4-mapped': ['::ffff:127.0.0.1', '::ffff:8.8.8.8', '::ffff:7f00:1', '::FFFF:10.0.0.1'],
  'IPv4-compatible': ['::127.0.0.1', '::8.8.8.8'],
  NAT64: ['64:ff9b::7f00:1', '64:ff9b::8.8.8.8', '64:ff9b:1::1'],
  '6to4': ['2002:7f00:1::', '2002:808:808::1', '192.88.99.1'],
  Teredo: ['2001:0:7f00:1::1', '2001::1'],
  'no address': ['', 'localhost', '127.1', '0x7f000001', '2130706433', '1.2.3.4.5', '1::2::3', '8.8.8.8/32'],
};
const ACCEPTED = [
  '8.8.8.8',
  '1.1.1.1',
  '93.184.216.34',
  '172.32.0.1',
  '100.128.0.1',
  '2606:4700::1',
  '2a00:1450::1',
];

describe('H3: addresses that are asked on a stranger’s word', () => {
  for (const [what, addresses] of Object.entries(REFUSED)) {
    test(`H3: not ${what}`, () => {
      const mayReach = createReach(false);
      for (const address of addresses) assert.equal(mayReach(address), false, address);
    });
  }

  test('public ones', () => {
    for (const address of ACCEPTED) assert.equal(isPublicAddress(address), true, address);
  });

  test('private IPv6 networks are unique local ones and those of examples, to the last address', () => {
    for (const address of ['fc00::', 'fdff:ffff::1', '2001:db8::', '2001:db8:ffff:ffff::1'])
      assert.equal(isPrivateIpv6(address), true, address);
    for (const address of ['fbff::1', 'fe00::', '2001:db7:ffff::1', '2001:db9::', '::1', '10.0.0.1', 'fd'])
      assert.equal(isPrivateIpv6(address), false, address);
  });

  test('no spelling of an IPv4 address inside IPv6 is let through, and no text breaks it', () => {
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        for (const prefix of ['::ffff:', '::', '64:ff9b::', '::ffff:0:'])
          assert.equal(isPublicAddress(`${prefix}${address}`), false);
      }),
    );
    fc.assert(fc.property(fc.string(), (text) => typeof isPublicAddress(text) === 'boolean'));
    fc.assert(fc.property(fc.ipV6(), (text) => !isPublicAddress(text) || /^[23][0-9a-f]{3}:/i.test(text)));
  });
});
