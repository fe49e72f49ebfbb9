import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blake2b } from '@noble/hashes/blake2.js';
import { base58 } from '@scure/base';
import { getPublicKey, secretFromSeed, sign } from '@scure/sr25519';
import { bytesToHex, hexToBytes } from '../hex.ts';
import { substrate } from './substrate.ts';
import { describeFamily } from './testing/suite.ts';

const utf8 = (text: string) => new TextEncoder().encode(text);

function ss58(prefix: readonly number[], body: Uint8Array): string {
  const bytes = Uint8Array.of(...prefix, ...body);
  const checksum = blake2b(Uint8Array.of(...utf8('SS58PRE'), ...bytes)).subarray(0, 2);
  return base58.encode(Uint8Array.of(...bytes, ...checksum));
}

const encode = (signature: Uint8Array) =>
  JSON.stringify({ curve: 'sr25519', data: `0x${bytesToHex(signature)}` });
const KEY = new Uint8Array(32).fill(9);

describeFamily({
  name: 'Substrate',
  family: substrate,
  checksummed: true,
  createSignatory(key) {
    const secret = secretFromSeed(key);
    return {
      address: ss58([42], getPublicKey(secret)),
      sign: (text) => sign(secret, utf8(text), new Uint8Array(32)),
      encode,
    };
  },
  normalise: (signature) => JSON.stringify(JSON.parse(signature)).toLowerCase(),
  badAddresses: {
    '31 bytes': ss58([42], KEY.subarray(1)),
    '33 bytes': ss58([42], Uint8Array.of(...KEY, 0)),
    'a reserved prefix': ss58([128], KEY),
    'a short prefix written long': ss58([0x40 | (42 >> 2), (42 & 3) << 6], KEY),
    'a wrong checksum': '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQZ',
    'a Solana address': base58.encode(KEY),
  },
});

test('known addresses of one key (Substrate, Polkadot, Kusama, a two-byte prefix) are four senders', () => {
  const alice = hexToBytes('d43593c715fdd31c61141abd04a99fd6822c8558854ccde39a5684e7a56da27d')!;
  const addresses = {
    '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY': [42],
    '15oF4uVJwmo4TdGW7VfQxNLavjCXviqxT9S1MgbjMNHr6Sp5': [0],
    HNZata7iMYWmk5RvZRTiAsSDhV8366zq2YGb3tLH5Upf74F: [2],
    [ss58([0x40 | ((1284 >> 2) & 0x3f), (1284 >> 8) | ((1284 & 3) << 6)], alice)]: undefined,
  };
  for (const [address, prefix] of Object.entries(addresses)) {
    assert.equal(substrate.parseAddress(address), address);
    if (prefix) assert.equal(ss58(prefix, alice), address);
  }
});

test('known signatures of other implementations (schnorrkel in C++, Go and Rust; subkey)', () => {
  const schnorrkel =
    '4e172314444b8f820bb54c22e95076f220ed25373e5c178234aa6c211d29271244b947e3ff3418ff6b45fd1df1140c8cbff69fc58ee6dc96df70936a2bb74b82';
  const key = hexToBytes('46ebddef8cd9bb167dc30878d7113b7e168e6f0646beffd77d69d39bad76b47a')!;
  const subkey =
    '22f91b41ba12f8663ddce26bfc90dbfe6a51683fd3782ad679ab2a5fdbe7d44c2a119f22c74eea22555e5483eb7f42b828f189a38379d59c3b607d2461f0858e';
  const address = '5Gv8YYFu8H1btvmrJy9FjjAWfb99wrhV3uhPFoNEr918utyR';
  assert.equal(substrate.verify('this is a message', `{"data":"0x${schnorrkel}"}`, ss58([42], key)), true);
  assert.equal(substrate.verify('this is a massage', `{"data":"0x${schnorrkel}"}`, ss58([42], key)), false);
  assert.equal(substrate.verify('test message\n', `{"data":"0x${subkey}"}`, address), true);
});

test('the text within <Bytes> is the same text; nothing else is', () => {
  const secret = secretFromSeed(KEY);
  const address = ss58([42], getPublicKey(secret));
  const signed = (text: string) => encode(sign(secret, utf8(text)));
  assert.equal(substrate.verify('{}', signed('<Bytes>{}</Bytes>'), address), true);
  for (const text of ['<Bytes>{}', '{}</Bytes>', '<bytes>{}</bytes>', '<Bytes><Bytes>{}</Bytes></Bytes>']) {
    assert.equal(substrate.verify('{}', signed(text), address), false, text);
  }
});

test('the JSON of a signature: sr25519 alone, 0x and 128 digits', () => {
  const secret = secretFromSeed(KEY);
  const address = ss58([42], getPublicKey(secret));
  const hex = bytesToHex(sign(secret, utf8('x')));
  const verify = (fields: object) => substrate.verify('x', JSON.stringify(fields), address);
  assert.equal(verify({ data: `0x${hex}` }), true);
  assert.equal(verify({ data: `0x${hex.toUpperCase()}` }), true);
  for (const bad of [
    { data: hex },
    { data: `0x01${hex}` },
    { curve: 'ed25519', data: `0x${hex}` },
    { curve: null, data: `0x${hex}` },
    { data: `0x${hex}`, extra: 1 },
    {},
  ]) {
    assert.equal(verify(bad), false, JSON.stringify(bad));
  }
});
