import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { base58, bech32 } from '@scure/base';
import { hexToBytes } from '../hex.ts';
import { avalanche, avalancheDigest } from './avalanche.ts';
import { describeFamily } from './testing/suite.ts';

const nodeHash = (name: string, bytes: Uint8Array | string) => createHash(name).update(bytes).digest();

function addressOf(chain: string, secret: Uint8Array): string {
  const key = nodeHash('ripemd160', nodeHash('sha256', secp256k1.getPublicKey(secret)));
  return `${chain}-${bech32.encodeFromBytes('avax', key)}`;
}

const sign = (secret: Uint8Array, text: string) => {
  const signature = secp256k1.sign(avalancheDigest(text), secret, { prehash: false, format: 'recovered' });
  return Uint8Array.of(...signature.subarray(1), signature[0]!);
};
const encode = (signature: Uint8Array) =>
  base58.encode(Uint8Array.of(...signature, ...nodeHash('sha256', signature).subarray(-4)));
const hash = new Uint8Array(20).fill(5);

describeFamily({
  name: 'Avalanche',
  family: avalanche,
  checksummed: true,
  createSignatory: (secret) => ({
    address: addressOf('X', secret),
    sign: (text) => sign(secret, text),
    encode,
  }),
  badAddresses: {
    'no chain': bech32.encodeFromBytes('avax', hash),
    'an unknown chain': `Q-${bech32.encodeFromBytes('avax', hash)}`,
    'a chain in lower case': `x-${bech32.encodeFromBytes('avax', hash)}`,
    'another network': `X-${bech32.encodeFromBytes('fuji', hash)}`,
    '21 bytes': `X-${bech32.encodeFromBytes('avax', new Uint8Array(21))}`,
    'an EVM address': '0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed',
  },
});

test('the addresses of the key that Avalanche funds on test networks', () => {
  const secret = hexToBytes('56289e99c94b6912bfc12adc093c9b51124f0dc54ac7a766b2bc5ccf558d8027')!;
  for (const chain of ['X', 'P', 'C']) {
    const address = addressOf(chain, secret);
    assert.equal(address, `${chain}-avax18jma8ppw3nhx5r4ap8clazz0dps7rv5ukulre5`);
    assert.equal(avalanche.parseAddress(address), address);
    assert.equal(avalanche.verify('text', encode(sign(secret, 'text')), address), true);
  }
});

test('the digest, built by hand', () => {
  const bytes = Buffer.from(`\x1aAvalanche Signed Message:\n\0\0\x01\0${'x'.repeat(256)}`, 'latin1');
  assert.deepEqual(Buffer.from(avalancheDigest('x'.repeat(256))), nodeHash('sha256', bytes));
});

test('recovery ids 2 and 3 and a wrong checksum are refused', () => {
  const secret = new Uint8Array(32).fill(0x11);
  const good = sign(secret, 'x');
  const address = addressOf('X', secret);
  for (const id of [2, 3, 4, 27, 28, 255]) {
    assert.equal(avalanche.verify('x', encode(good.with(64, id)), address), false);
  }
  const unchecked = base58.encode(Uint8Array.of(...good, 1, 2, 3, 4));
  assert.equal(avalanche.verify('x', unchecked, address), false);
  assert.equal(avalanche.verify('x', base58.encode(good), address), false);
});
