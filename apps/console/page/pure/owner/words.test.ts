import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { costText } from './cost.ts';
import { wordsOf } from './words.ts';

const textOf = (type: string, content: unknown) =>
  JSON.stringify({ chain: 'ETH', channel: 'skerry', type, timestamp: 1_767_323_045, nonce: 'n', content });

describe('what is about to be signed, in words', () => {
  test('a machine: its size, and what is open', () => {
    const content = { name: 'web', cpu: 2, memory: 512, disk: 4, image: 'debian:12', ssh_key: 'k' };
    const { title, facts, type, isKnown } = wordsOf(
      textOf('INSTANCE', {
        ...content,
        firewall: { allowedPorts: [22, 443], allowedUdpPorts: [443] },
        address: '0xother',
      }),
    );
    assert.deepEqual([title, type, isKnown], ['Ask for the machine web', 'INSTANCE', true]);
    const told = Object.fromEntries(facts);
    assert.equal(told.size, '2 cores, 512 MiB of memory, 4 GiB of disk');
    assert.equal(told['open to everybody'], 'port 22, 443, udp:443');
    assert.equal(told['on behalf of'], '0xother');
    assert.equal(told.time, '2026-01-02T03:04:05.000Z');
    assert.equal(
      Object.fromEntries(wordsOf(textOf('INSTANCE', content)).facts)['open to everybody'],
      'port 22',
    );
  });

  test('what ends is named', () => {
    const { title, facts } = wordsOf(textOf('FORGET', { hashes: ['a', 'b'], reason: 'r' }));
    assert.match(title, /ends/);
    assert.deepEqual(facts.slice(0, 3), [
      ['message', 'a'],
      ['message', 'b'],
      ['reason', 'r'],
    ]);
  });

  test('a domain and its machine; no other list of an owner is known', () => {
    const claim = { message_id: 'm', type: 'instance' };
    const wordsOfClaim = (key: string, content: object) => wordsOf(textOf('AGGREGATE', { key, content }));
    const { title, facts, isKnown } = wordsOfClaim('domains', { 'www.example.org': claim });
    assert.deepEqual(
      [title, facts[0], isKnown],
      ['Lead www.example.org to the machine', ['machine', 'm'], true],
    );
    assert.match(wordsOfClaim('domains', { 'www.example.org': null }).title, /no machine any more/);
    for (const [key, content] of [
      ['security', { authorizations: [] }],
      ['domains', {}],
      ['domains', { 'a.example': null, 'b.example': claim }],
    ] as const)
      assert.equal(wordsOfClaim(key, content).isKnown, false, key);
  });

  test('a secret of a webhook is not shown', () => {
    assert.doesNotMatch(JSON.stringify(wordsOf(textOf('WEBHOOK', { url: 'u', secret: 'hidden' }))), /hidden/);
  });

  test('a file and a pass for a node are no messages', () => {
    assert.deepEqual([wordsOf('a'.repeat(64)).type, wordsOf('a'.repeat(64)).isKnown], [null, true]);
    const pass = wordsOf(JSON.stringify({ pubkey: {}, alg: 'ECDSA', domain: 'node.example', expires: 'x' }));
    assert.match(pass.title, /node\.example, for an hour/);
  });

  test('what the console does not make is said to be unknown', () => {
    for (const text of ['', 'hello', '[]', '{}', textOf('NEW_TYPE', {}), textOf('INSTANCE', 7)])
      assert.equal(wordsOf(text).isKnown, false, text);
  });
});

test('what something costs', () => {
  assert.equal(
    costText({ nano: '3958333333' }),
    '14,250 credits an hour, 342,000 a day ($0.34), 10,260,000 in 30 days ($10.26)',
  );
  assert.equal(costText({ nano: '7535' }), '0.651 credits a day ($0.00000065), 19.53 in 30 days ($0.000019)');
  assert.equal(costText({ nano: '75350' }), '6.51 credits a day ($0.0000065), 195.3 in 30 days ($0.00019)');
  assert.equal(costText({ nano: '0' }), 'nothing: no price is published');
});
