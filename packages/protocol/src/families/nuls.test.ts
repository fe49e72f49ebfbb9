import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { base58, base64 } from '@scure/base';
import { nuls, nulsAddressOf, nulsDigest } from './nuls.ts';
import { describeFamily } from './testing/suite.ts';

const sign = (secret: Uint8Array, text: string) => {
  const signature = secp256k1.sign(nulsDigest(text), secret, { prehash: false, format: 'recovered' });
  return Uint8Array.of(27 + signature[0]!, ...signature.subarray(1));
};

function address(head: readonly number[], hashBytes: number, prefix = 'NULSd', slip = 0): string {
  const body = [...head, ...new Uint8Array(hashBytes).fill(5)];
  return (
    prefix +
    base58.encode(
      Uint8Array.of(
        ...body,
        body.reduce((sum, byte) => sum ^ byte, slip),
      ),
    )
  );
}

describeFamily({
  name: 'NULS2',
  family: nuls,
  checksummed: false,
  createSignatory: (secret) => ({
    address: nulsAddressOf(secp256k1.getPublicKey(secret)),
    sign: (text) => sign(secret, text),
    encode: (signature) => base64.encode(signature),
  }),
  badAddresses: {
    'a wrong check byte': address([1, 0, 1], 20, 'NULSd', 1),
    'another chain id': address([2, 0, 1], 20),
    'a contract': address([1, 0, 2], 20),
    'a test network': address([2, 0, 1], 20, 'tNULSe'),
    '19 bytes': address([1, 0, 1], 19),
    '21 bytes': address([1, 0, 1], 21),
  },
});

test('an address is chain, kind, hash and check byte', () => {
  const key = secp256k1.getPublicKey(new Uint8Array(32).fill(0x11));
  const hash = createHash('ripemd160').update(createHash('sha256').update(key).digest()).digest();
  const body = [1, 0, 1, ...hash];
  const text = `NULSd${base58.encode(
    Uint8Array.of(
      ...body,
      body.reduce((sum, byte) => sum ^ byte),
    ),
  )}`;
  assert.equal(nulsAddressOf(key), text);
  assert.equal(nuls.parseAddress(text), text);
  assert.equal(nuls.parseAddress(address([1, 0, 1], 20)), address([1, 0, 1], 20));
});

test('the digest, built by hand, at every width of the length', () => {
  const widths: [number, string][] = [
    [0, '\0'],
    [252, '\xfc'],
    [253, '\xfd\xfd\0'],
    [65535, '\xfd\xff\xff'],
    [65536, '\xfe\0\0\x01\0'],
  ];
  for (const [length, prefix] of widths) {
    const bytes = Buffer.from(`\x18NULS Signed Message:\n${prefix}${'x'.repeat(length)}`, 'latin1');
    const digest = createHash('sha256').update(bytes).digest();
    assert.deepEqual(Buffer.from(nulsDigest('x'.repeat(length))), digest, `${length}`);
  }
});

test('header bytes other than 27 and 28 are refused', () => {
  const secret = new Uint8Array(32).fill(0x11);
  const good = sign(secret, 'x');
  const sender = nulsAddressOf(secp256k1.getPublicKey(secret));
  assert.equal(nuls.verify('x', base64.encode(good), sender), true);
  for (let header = 0; header < 256; header++) {
    if (header === good[0]) continue;
    assert.equal(nuls.verify('x', base64.encode(good.with(0, header)), sender), false, `${header}`);
  }
});
