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

test('a node that names another owner, or another place, in the records is not believed', () => {
  const claims = readClaims(
    { aggregates: [{ content: { 'a.example': { message_id: ID, type: 'instance' } } }] },
    'claims',
  );
  const neededOf = (target: string) => {
    const rules = [
      { name: 'cname', dns: { type: 'cname', name: 'a.example', value: target } },
      { name: 'owner_proof', dns: { type: 'txt', name: '_control.a.example', value: '0xevil' } },
    ];
    const told = { name: 'a.example', owner: '0xa', item_hash: ID, active: false };
    const atNode = readDomains([{ ...told, cname: false, owner_proof: false, rules }], 'domains');
    return domainsOf(ID, '0xa', { claims, atNode })[0]!.needed;
  };
  assert.deepEqual(
    neededOf('a.example.zone.test')?.map(({ name, value }) => [name, value]),
    [
      ['a.example', 'a.example.zone.test'],
      ['_control.a.example', '0xa'],
    ],
  );
  for (const target of ['zone.test', 'a.example.', 'b.example.zone.test', 'a.example.zone test'])
    assert.equal(neededOf(target), undefined, target);
});
