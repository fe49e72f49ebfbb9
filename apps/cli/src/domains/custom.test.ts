import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DomainView } from '@skerry/protocol/api/compute/node';
import { readDomain, renderDomain } from './custom.ts';

test('which records give a domain to its owner is not what a node says, but what follows from both', () => {
  const toldWith = (target: string): DomainView => ({
    ...{ name: 'www.example.org', owner: '0xa', item_hash: 'a'.repeat(64) },
    ...{ active: false, cname: false, owner_proof: 'unknown' },
    rules: [
      { name: 'cname', dns: { type: 'cname', name: 'www.example.org', value: target } },
      { name: 'owner_proof', dns: { type: 'txt', name: '_control.www.example.org', value: '0xevil' } },
    ],
  });
  const shown = renderDomain(readDomain(toldWith('www.example.org.zone.test')));
  assert.match(shown, /CNAME +www\.example\.org +www\.example\.org\.zone\.test +not found/);
  assert.match(shown, /TXT +_control\.www\.example\.org +0xa +no name server answers/);
  for (const target of ['', 'zone.test', 'www.example.org.', 'www.example.org.zone\u001b[2Jtest'])
    assert.throws(() => readDomain(toldWith(target)), { code: 'UNEXPECTED_ANSWER' });
});
