import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ownerOfUrl } from './owner.ts';

test('places that one stranger has for nothing are one owner, however they are written', () => {
  for (const [owner, ...hosts] of [
    ['flood.test', 'flood.test', 'n1.flood.test', 'a.b.flood.test:4020', 'N2.Flood.Test.'],
    // A short name is as good a name as any other.
    ['abc.xyz', 'n1.abc.xyz', 'n2.abc.xyz'],
    ['dw.de', 'n1.dw.de', 'n2.dw.de'],
    ['a.co.uk', 'a.co.uk', 'n1.a.co.uk'],
    ['b.com.au', 'b.com.au', 'n1.b.com.au.'],
    ['198.51.100', '198.51.100.1', '198.51.100.254:8080', '[::ffff:198.51.100.7]', '3325256705'],
    ['2a09:1:2', '[2a09:1:2::1]', '[2a09:1:2:3:4:5:6:7]', '[2a09:1:2:ffff::]'],
    // Zeros that are left out.
    ['2a09:0:0', '[2a09::1]', '[2a09::2]', '[2a09::1:2:3:4]', '[2a09:0:0:1::1]', '[2a09::1:0:0:0:1]'],
    ['localhost', 'localhost:1'],
  ] as const)
    for (const host of hosts) assert.equal(ownerOfUrl(`http://${host}/`), owner, host);
});
