import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ed25519 } from '@noble/curves/ed25519.js';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { blake2b } from '@noble/hashes/blake2.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { createBase58check } from '@scure/base';
import { describeFamily, type FamilySubject } from './testing/suite.ts';
import { tezos } from './tezos.ts';

const base58check = createBase58check(sha256);
const utf8 = (text: string) => new TextEncoder().encode(text);
const prefixed = (prefix: readonly number[], bytes: Uint8Array) =>
  base58check.encode(Uint8Array.of(...prefix, ...bytes));
const digestOf = (bytes: Uint8Array) => blake2b(bytes, { dkLen: 32 });

const CURVES = {
  tz1: {
    address: [6, 161, 159],
    key: [13, 15, 37, 217],
    signature: [9, 245, 205, 134, 18],
    publicKeyOf: (secret: Uint8Array) => ed25519.getPublicKey(secret),
    sign: (digest: Uint8Array, secret: Uint8Array) => ed25519.sign(digest, secret),
  },
  tz2: {
    address: [6, 161, 161],
    key: [3, 254, 226, 86],
    signature: [13, 115, 101, 19, 63],
    publicKeyOf: (secret: Uint8Array) => secp256k1.getPublicKey(secret),
    sign: (digest: Uint8Array, secret: Uint8Array) => secp256k1.sign(digest, secret, { prehash: false }),
  },
};
const TIME_MS = Date.UTC(2022, 8, 23, 14, 41, 19, 29);

/** The sentence that a wallet would show, packed; built in hexadecimal as clients do. */
function micheline(text: string, dAppUrl: string): Uint8Array {
  const hex = Buffer.from(`Tezos Signed Message: ${dAppUrl} 2022-09-23T14:41:19.029Z ${text}`).toString(
    'hex',
  );
  return Buffer.from(`050100${Buffer.from(String(hex.length)).toString('hex')}${hex}`, 'hex');
}

function subject(
  kind: 'tz1' | 'tz2',
  payloadOf: (text: string) => Uint8Array,
  extra: Readonly<Record<string, string>> = {},
  signaturePrefix: readonly number[] = CURVES[kind].signature,
): Pick<FamilySubject, 'createSignatory'> {
  const curve = CURVES[kind];
  return {
    createSignatory(secret) {
      const key = curve.publicKeyOf(secret);
      return {
        address: prefixed(curve.address, blake2b(key, { dkLen: 20 })),
        sign: (text) => curve.sign(digestOf(payloadOf(text)), secret),
        encode: (signature) =>
          JSON.stringify({
            signature: prefixed(signaturePrefix, signature),
            publicKey: prefixed(curve.key, key),
            ...extra,
          }),
      };
    },
  };
}

const hash = new Uint8Array(20).fill(5);
const shared = {
  family: tezos,
  checksummed: true,
  normalise: (signature: string) => {
    // What is said by default may be left out.
    const { signingType = 'raw', ...fields } = JSON.parse(signature);
    return JSON.stringify({ ...fields, signingType });
  },
  badAddresses: {
    'a P-256 account': prefixed([6, 161, 164], hash),
    'a BLS account': prefixed([6, 161, 166], hash),
    'a contract': prefixed([2, 90, 121], Uint8Array.of(...hash, 0)),
    '19 bytes': prefixed([6, 161, 159], hash.subarray(1)),
    '21 bytes': prefixed([6, 161, 159], Uint8Array.of(...hash, 1)),
    'a public key': prefixed(CURVES.tz1.key, new Uint8Array(32)),
  },
};
const GENERIC = [4, 130, 43];

describeFamily({ name: 'Tezos (tz1, raw)', ...shared, ...subject('tz1', utf8) });
describeFamily({
  name: 'Tezos (tz2, micheline, generic signature)',
  ...shared,
  ...subject(
    'tz2',
    (text) => micheline(text, 'example.org'),
    { signingType: 'micheline', dAppUrl: 'example.org' },
    GENERIC,
  ),
  context: { timestampMs: TIME_MS },
});

test('a known signature (objkt.com sign-in, tz2, in the tests of Tezex)', () => {
  const address = 'tz2BC83pvEAag6r2ZV7kPghNAbjFoiqhCvZx';
  const field = JSON.stringify({
    signature:
      'spsig1ZNQaUKNERZSiEiNviqa5EAPkcNASXhfkXtxRatZTDZAnUB4Ra2Jus8b1oEpFnPx8Z6g28pd8vK3R8nPK29JDU5FiSLH5T',
    publicKey: 'sppk7aBerAEA6tv4wzg6FnK7i5YrGtEGFVvNjWhc2QX8bhzpouBVFSW',
  });
  const text = `\x05\x01\0\0\0\x71Tezos Signed Message: sign me in as ${address} on objkt.com at 2021-10-04T18:59:13.990Z`;
  assert.equal(tezos.parseAddress(address), address);
  assert.equal(tezos.verify(text, field, address), true);
  assert.equal(tezos.verify(text.replace('objkt', 'objct'), field, address), false);
});

test('known addresses of public keys (the first account of every Tezos sandbox)', () => {
  const key = base58check.decode('edpkuBknW28nW72KG6RoHtYW7p12T6GKc7nAbwYX5m8Wd9sDVC9yav').subarray(4);
  const address = prefixed(CURVES.tz1.address, blake2b(key, { dkLen: 20 }));
  assert.equal(address, 'tz1KqTpEZ7Yob7QbPE4Hy4Wo8fHG8LhKxZSx');
  assert.equal(tezos.parseAddress(address), address);
});

test('tz3 and others are refused by name', () => {
  for (const prefix of [
    [6, 161, 164],
    [6, 161, 166],
  ]) {
    assert.throws(() => tezos.parseAddress(prefixed(prefix, hash)), {
      code: 'INVALID_ADDRESS',
      message: /tz[34].*tz1 and tz2 can/,
    });
  }
});

test('micheline covers the time of the message to the millisecond, and the site', () => {
  const one = subject('tz1', (text) => micheline(text, 'aleph.im'), { signingType: 'micheline' });
  const { address, encode, sign } = one.createSignatory(new Uint8Array(32).fill(0x11));
  const field = encode(sign('x'));
  const verify = (timestampMs: number, text = field) => tezos.verify('x', text, address, { timestampMs });
  assert.equal(verify(TIME_MS), true);
  for (const time of [TIME_MS + 1, TIME_MS - 1, 0, -1, 1e300, Number.NaN, Number.POSITIVE_INFINITY]) {
    assert.equal(verify(time), false, `${time}`);
  }
  assert.equal(tezos.verify('x', field, address), false);
  const fields = JSON.parse(field);
  const withSite = (dAppUrl: unknown) => JSON.stringify({ ...fields, dAppUrl });
  assert.equal(verify(TIME_MS, withSite('aleph.im')), true);
  for (const site of ['example.org', '', 'aleph.im x', 'é', null]) {
    assert.equal(verify(TIME_MS, withSite(site)), false, `${site}`);
  }
  assert.equal(verify(TIME_MS, JSON.stringify({ ...fields, signingType: 'raw' })), false);
  assert.equal(verify(TIME_MS, JSON.stringify({ ...fields, signingType: 'other' })), false);
});

test('a signature names no other curve than its key', () => {
  for (const [kind, wrong] of [
    ['tz1', CURVES.tz2],
    ['tz2', CURVES.tz1],
  ] as const) {
    const one = subject(kind, utf8, {}, wrong.signature).createSignatory(new Uint8Array(32).fill(0x11));
    assert.equal(tezos.verify('x', one.encode(one.sign('x')), one.address), false);
    const generic = subject(kind, utf8, {}, GENERIC).createSignatory(new Uint8Array(32).fill(0x11));
    assert.equal(tezos.verify('x', generic.encode(generic.sign('x')), generic.address), true);
  }
});
