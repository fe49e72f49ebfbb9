import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ed25519 } from '@noble/curves/ed25519.js';
import { base58 } from '@scure/base';
import { CHAINS, familyOf, parseAccountAddress } from './chains.ts';
import { verifyEnvelope } from './envelope.ts';
import { itemHashOf } from './hash.ts';

test('every code has its family; chains with the accounts of Ethereum share one', () => {
  const evm = Object.keys(CHAINS).filter((code) => CHAINS[code] === CHAINS.ETH);
  assert.equal(evm.length, 24);
  assert.equal(new Set(Object.values(CHAINS)).size, 7);
  assert.equal(familyOf('ES'), familyOf('SOL'));
  for (const code of Object.keys(CHAINS)) assert.equal(familyOf(code), CHAINS[code]);
});

test('codes without a family are unknown, whatever they are called', () => {
  for (const code of ['NEO', 'NULS', 'eth', '', 'ETH ', '__proto__', 'toString', 'constructor']) {
    assert.throws(() => familyOf(code), { code: 'UNKNOWN_CHAIN' });
  }
});

test('an address that no chain has is refused, and told what chains have', () => {
  const mistyped = [
    ...['', 'abc', ' ', 'nobody', 'x'.repeat(1_000), '0xc4ba10dd', `0x${'1'.repeat(39)}`, '1'.repeat(31)],
    // One character of each changed: base58check, SS58, bech32.
    ...['tz1VSUr8wwNhLAzempoch5d6hLRiTh8Cjcjc', '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQZ'],
    'cosmos1yfp9xx0q2ayev4u2ppyejnac3pjzt2qmcjd4ac',
  ];
  for (const text of mistyped)
    assert.throws(() => parseAccountAddress(text), { code: 'INVALID_ADDRESS' }, text);
  assert.throws(() => parseAccountAddress('abc'), {
    message: /^no chain has the address "abc"; they have: ETH: 0x and 40 .*SOL: 32 bytes.*; TEZOS: tz1/,
  });
  assert.equal(parseAccountAddress(`0x${'AB'.repeat(20)}`), `0x${'ab'.repeat(20)}`);
});

test('an envelope signed by a Solana key, from body to item hash', () => {
  const seed = new Uint8Array(32).fill(3);
  const address = base58.encode(ed25519.getPublicKey(seed));
  const message = { chain: 'SOL', channel: 'c', type: 'POST', timestamp: 1_800_000_000, content: { a: 'é' } };
  const text = JSON.stringify(message);
  const signed = base58.encode(ed25519.sign(new TextEncoder().encode(text), seed));
  const signature = JSON.stringify({ signature: signed, publicKey: address });
  const body = (changes: object) => JSON.stringify({ message, signature, address, ...changes });
  const verified = verifyEnvelope(body({}), message.timestamp);
  assert.equal(verified.sender, address);
  assert.equal(verified.itemHash, itemHashOf('SOL', address, text));
  const now = message.timestamp;
  const eclipse = { message: { ...message, chain: 'ES' } };
  assert.throws(() => verifyEnvelope(body(eclipse), now), { code: 'INVALID_SIGNATURE' });
  assert.throws(() => verifyEnvelope(body({ signature: 'x' }), now), { code: 'INVALID_SIGNATURE' });
  assert.throws(() => verifyEnvelope(body({ address: address.toLowerCase() }), now), {
    code: 'INVALID_ADDRESS',
  });
});
