import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseDomainName } from '@skerry/protocol';
import fc from 'fast-check';
import { type DomainClaim, type DomainProof, decideDomains, readClaims } from './claims.ts';

const ID = 'a'.repeat(64);
const owner = `0x${'1'.repeat(40)}`;
const other = `0x${'2'.repeat(40)}`;
const claim = (by: string): DomainClaim => ({ name: 'www.example.org', owner: by, instanceId: ID });
const proven = { cname: true, ownerProof: true } as const;
const away = { cname: 'unknown', ownerProof: 'unknown' } as const;

describe('custom domains', () => {
  test('names are host names, in lower case', () => {
    assert.equal(parseDomainName('WWW.Example.ORG.'), 'www.example.org');
    assert.equal(parseDomainName('xn--bcher-kva.example'), 'xn--bcher-kva.example');
    for (const wrong of [
      '',
      'localhost',
      '-a.example',
      'a-.example',
      'a..example',
      '10.0.0.1',
      '*.example.org',
      'a b.example',
      `${'a'.repeat(64)}.example`,
    ])
      assert.equal(parseDomainName(wrong), undefined, wrong);
  });

  test('an aggregate is read as anybody may have written it', () => {
    const entry = { message_id: ID, type: 'instance', updated_at: 1, spa: '1' };
    assert.deepEqual(readClaims(owner, { 'www.example.org': entry }), [claim(owner)]);
    const old = { message_id: ID, programType: 'instance' };
    assert.equal(readClaims(owner, { 'www.example.org': old }).length, 1);
    assert.deepEqual(
      readClaims(owner, { 'www.example.org': null, 'b.example': { ...entry, type: 'ipfs' } }),
      [],
    );
    fc.assert(fc.property(fc.anything(), (value) => Array.isArray(readClaims(owner, value))));
  });

  test('proof decides; no answer leaves everything as it was', () => {
    const decide = (proofs: readonly (readonly [string, DomainProof])[], before = decideDomains([], [])) =>
      decideDomains(
        proofs.map(([by, proof]) => ({ ...claim(by), proof })),
        before,
      );
    const active = (states: ReturnType<typeof decide>) =>
      states.filter((one) => one.isActive).map((one) => one.owner);
    assert.deepEqual(active(decide([[owner, { cname: true, ownerProof: false }]])), []);
    assert.deepEqual(active(decide([[owner, away]])), []);
    const first = decide([[other, proven]]);
    assert.deepEqual(active(first), [other]);
    assert.deepEqual(active(decide([[other, away]], first)), [other]);
    assert.deepEqual(
      active(
        decide(
          [
            [owner, proven],
            [other, proven],
          ],
          first,
        ),
      ),
      [other],
      'who has it keeps it',
    );
    assert.deepEqual(
      active(
        decide([
          [owner, proven],
          [other, proven],
        ]),
      ),
      [owner],
      'else the order is fixed',
    );
    assert.deepEqual(
      active(
        decide(
          [
            [owner, proven],
            [other, { ...proven, ownerProof: false }],
          ],
          first,
        ),
      ),
      [owner],
    );
  });

  test('a name never leads to two, whatever is claimed and proven', () => {
    const answer = fc.constantFrom(true, false, 'unknown' as const);
    const one = fc.record({
      name: fc.constantFrom('a.example', 'b.example'),
      owner: fc.constantFrom(owner, other),
      instanceId: fc.constantFrom(ID, 'b'.repeat(64)),
      proof: fc.record({ cname: answer, ownerProof: answer }),
    });
    fc.assert(
      fc.property(fc.array(fc.array(one, { maxLength: 6 }), { maxLength: 4 }), (rounds) => {
        let states = decideDomains([], []);
        for (const claims of rounds) {
          states = decideDomains(claims, states);
          const names = states.filter((state) => state.isActive).map((state) => state.name);
          assert.equal(new Set(names).size, names.length);
        }
      }),
    );
  });
});
