import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAddressSet, createReach } from '@skerry/kit';
import { LAN, NEVER_FROM_GUESTS } from './private-networks.ts';

/** One of each kind that is not the internet's (IANA special-purpose registries), and the ends of the ranges. */
const SPECIAL = [
  ...['0.0.0.1', '10.0.0.1', '10.255.255.255', '100.64.0.1', '127.0.0.1', '169.254.169.254', '172.16.0.1'],
  ...[
    '172.31.255.255',
    '192.0.0.8',
    '192.88.99.1',
    '192.168.255.255',
    '198.18.0.1',
    '224.0.0.1',
    '240.0.0.1',
  ],
  ...['255.255.255.255', '::', '::1', '::7f00:1', '64:ff9b::7f00:1', '64:ff9b:1::1', '100::1', '2001:0:1::1'],
  ...['2002:7f00:1::1', 'fc00::1', 'fd00:ec2::254', 'fe80::1', 'fec0::1', 'ff02::1'],
];
const OPEN = ['1.1.1.1', '172.32.0.1', '192.169.0.1', '2606:4700:4700::1111', '2a00::1'];
/** Beside a range that is closed, and nobody's: services ask nothing there, and nothing there needs to be closed. */
const UNASSIGNED = ['64:ff9c::1', 'fe00::1'];

test('M5: what no service of ours may ask, no guest reaches', () => {
  const isClosed = createAddressSet(
    [NEVER_FROM_GUESTS, LAN].flatMap(({ ip, ip6 }) => [
      ...ip,
      // Read as the IPv4 that it carries.
      ...ip6.filter((one) => !one.startsWith('::ffff:')),
    ]),
  );
  const mayReach = createReach(false);
  for (const address of SPECIAL) assert.ok(isClosed(address), address);
  for (const address of [...OPEN, ...UNASSIGNED]) assert.ok(!isClosed(address), address);
  const asked = [...SPECIAL, ...OPEN].filter((address) => !mayReach(address));
  for (const address of asked) assert.ok(isClosed(address), address);
});
