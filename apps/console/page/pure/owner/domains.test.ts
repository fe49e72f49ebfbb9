import assert from 'node:assert/strict';
import { test } from 'node:test';
import { domainsOf, readClaims, readDomains } from './domains.ts';

const ID = 'a'.repeat(64);

test('names that lead to a machine, with what its node found of each', () => {
  const claim = { message_id: ID, type: 'instance' };
  const claims = readClaims(
    {
      aggregates: [
        {
          content: {
            'b.example': claim,
            'a.example': claim,
            'gone.example': null,
            'x.example': { message_id: 'other' },
          },
        },
      ],
    },
    'claims',
  );
  const rules = [
    { name: 'cname', dns: { type: 'cname', name: 'a.example', value: 'a.example.zone.test' } },
    { name: 'owner_proof', dns: { type: 'txt', name: '_control.a.example', value: '0xa' } },
  ];
  const told = {
    name: 'a.example',
    item_hash: ID,
    active: false,
    cname: true,
    owner_proof: 'unknown',
    rules,
  };
  const atNode = readDomains(
    [
      { ...told, owner: '0xb', active: true },
      { ...told, owner: '0xA' },
    ],
    'domains',
  );
  assert.deepEqual(domainsOf(ID, '0xa', { claims, atNode }), [
    {
      name: 'a.example',
      isActive: false,
      needed: [
        { ...rules[0]!.dns, isFound: true },
        { ...rules[1]!.dns, isFound: null },
      ],
    },
    { name: 'b.example', isActive: false, needed: undefined },
  ]);
  assert.deepEqual(domainsOf(ID, '0xa', { claims: undefined, atNode }), []);
});
