import assert from 'node:assert/strict';
import { createPrivateKey, sign as signNatively } from 'node:crypto';
import { test } from 'node:test';
import { ed25519 } from '@noble/curves/ed25519.js';
import { base58 } from '@scure/base';
import { solana } from './solana.ts';
import { describeFamily } from './testing/suite.ts';

const encodeWith = (address: string) => (signature: Uint8Array) =>
  JSON.stringify({ signature: base58.encode(signature), publicKey: address });

describeFamily({
  name: 'Solana',
  family: solana,
  checksummed: false,
  createSignatory(key) {
    const address = base58.encode(ed25519.getPublicKey(key));
    return {
      address,
      sign: (text) => ed25519.sign(new TextEncoder().encode(text), key),
      encode: encodeWith(address),
    };
  },
  normalise: (signature) => JSON.stringify(JSON.parse(signature)),
  badAddresses: {
    '31 bytes': base58.encode(new Uint8Array(31).fill(7)),
    '33 bytes': base58.encode(new Uint8Array(33).fill(7)),
    'a letter outside the alphabet': 'AzfsDdCQp8uqzR4ProJ7yyLGKNp9iXHt92rEoiAHG4P0',
    'an EVM address': '0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed',
  },
});

const SEED = new Uint8Array(32).fill(0x11);
const ADDRESS = base58.encode(ed25519.getPublicKey(SEED));

test('a signature made by OpenSSL verifies', () => {
  const header = Uint8Array.from(Buffer.from('302e020100300506032b657004220420', 'hex'));
  const key = createPrivateKey({ key: Buffer.concat([header, SEED]), format: 'der', type: 'pkcs8' });
  const text = '{"chain":"SOL","text":"é"}';
  const signature = signNatively(null, Buffer.from(text), key);
  assert.equal(solana.verify(text, encodeWith(ADDRESS)(signature), ADDRESS), true);
});

test('the JSON of a signature: version 1 or none, no other keys, none twice', () => {
  const signature = base58.encode(ed25519.sign(new TextEncoder().encode('x'), SEED));
  const verify = (fields: object) => solana.verify('x', JSON.stringify(fields), ADDRESS);
  const good = { signature, publicKey: ADDRESS };
  assert.equal(verify({ ...good, version: 1 }), true);
  for (const bad of [
    { ...good, version: 2 },
    { ...good, version: '1' },
    { ...good, version: null },
    { ...good, note: 'x' },
    { signature },
    { publicKey: ADDRESS },
    { ...good, signature: [...signature] },
    { ...good, signature: `1${signature}` },
    [good],
  ]) {
    assert.equal(verify(bad), false, JSON.stringify(bad));
  }
  const twice = `{"signature":"${signature}","publicKey":"${ADDRESS}","publicKey":"${ADDRESS}"}`;
  assert.equal(solana.verify('x', twice, ADDRESS), false);
});

test('nobody signs for the System Program, whose address is a key of small order', () => {
  const address = base58.encode(new Uint8Array(32));
  const identity = Uint8Array.of(1, ...new Uint8Array(63));
  assert.equal(ed25519.verify(identity, new Uint8Array(3), new Uint8Array(32), { zip215: true }), true);
  assert.equal(solana.verify('\0\0\0', encodeWith(address)(identity), address), false);
});
