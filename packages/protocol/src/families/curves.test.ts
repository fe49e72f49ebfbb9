import assert from 'node:assert/strict';
import { createPublicKey, verify as verifyNatively } from 'node:crypto';
import { describe, test } from 'node:test';
import { ed25519 } from '@noble/curves/ed25519.js';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import fc from 'fast-check';
import { loadNativeEngine } from '../evm/secp256k1-node.ts';
import { pureEngine } from '../evm/secp256k1-pure.ts';
import { loadSystemEngine } from '../evm/secp256k1-system.ts';
import { bytesToHex, hexToBytes } from '../hex.ts';
import { recoverCompressedKey, verifyEcdsa, verifyEd25519 } from './curves.ts';

const hex = (text: string) => hexToBytes(text)!;
const bytes32 = fc.uint8Array({ minLength: 32, maxLength: 32 });
const secretKey = bytes32.filter((key) => secp256k1.utils.isValidSecretKey(key));

describe('Ed25519', () => {
  test('RFC 8032 §7.1, tests 1 to 3', () => {
    const vectors = [
      [
        'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
        '',
        'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
      ],
      [
        '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
        '72',
        '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
      ],
      [
        'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
        'af82',
        '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
      ],
    ] as const;
    for (const [key, message, signature] of vectors) {
      assert.equal(verifyEd25519(hex(signature), hex(message), hex(key)), true);
    }
  });

  test('the cases on which implementations part ("Taming the many EdDSAs", speccheck) follow its algorithm 2', () => {
    const smallOrder = 'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa';
    const mixed = 'f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43';
    const mixed2 = 'cdb267ce40c5cd45306fa5d2f29731459387dbf9eb933b7bd5aed9a765b88d4d';
    const ordinary = '442aad9f089ad9e14647b1ef9099a1ff4798d78589e66f28eca69c11f582a623';
    const cases: [string, boolean, string, string, string][] = [
      [
        'A and R of small order, S = 0',
        false,
        smallOrder,
        '8c93255d71dcab10e8f379c26200f3c7bd5f09d9bc3068d3ef4edeb4853022b6',
        'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a0000000000000000000000000000000000000000000000000000000000000000',
      ],
      [
        'A of small order',
        false,
        smallOrder,
        '9bd9f44f4dcc75bd531b56b2cd280b0bb38fc1cd6d1230e14861d861de092e79',
        'f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43a5bb704786be79fc476f91d3f3f89b03984d8068dcf1bb7dfc6637b45450ac04',
      ],
      [
        'R of small order',
        true,
        mixed,
        'aebf3f2601a0c8c5d39cc7d8911642f740b78168218da8471772b35f9d35b9ab',
        'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa8c4bd45aecaca5b24fb97bc10ac27ac8751a7dfe1baff8b953ec9f5833ca260e',
      ],
      [
        'A and R of mixed order',
        true,
        mixed2,
        '9bd9f44f4dcc75bd531b56b2cd280b0bb38fc1cd6d1230e14861d861de092e79',
        '9046a64750444938de19f227bb80485e92b83fdb4b6506c160484c016cc1852f87909e14428a7a1d62e9f22f3d3ad7802db02eb2e688b6c52fcd6648a98bd009',
      ],
      [
        'holds with the cofactor only',
        true,
        mixed2,
        'e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec4011eaccd55b53f56c',
        '160a1cb0dc9c0258cd0a7d23e94d8fa878bcb1925f2c64246b2dee1796bed5125ec6bc982a269b723e0668e540911a9a6a58921d6925e434ab10aa7940551a09',
      ],
      [
        'holds where 8 is not multiplied into k early',
        true,
        mixed2,
        'e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec4011eaccd55b53f56c',
        '21122a84e0b5fca4052f5b1235c80a537878b38f3142356b2c2384ebad4668b7e40bc836dac0f71076f9abe3a53f9c03c1ceeeddb658d0030494ace586687405',
      ],
      [
        'S above the order',
        false,
        ordinary,
        '85e241a07d148b41e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec40',
        'e96f66be976d82e60150baecff9906684aebb1ef181f67a7189ac78ea23b6c0e547f7690a0e2ddcd04d87dbc3490dc19b3b3052f7ff0538cb68afb369ba3a514',
      ],
      [
        'S far above the order',
        false,
        ordinary,
        '85e241a07d148b41e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec40',
        '8ce5b96c8f26d0ab6c47958c9e68b937104cd36e13c33566acd2fe8d38aa19427e71f98a473474f2f13f06f97c20d58cc3f54b8bd0d272f42b695dd7e89a8c22',
      ],
      [
        'R not canonical',
        false,
        mixed,
        'fdaebc429f4a735932a160da1301080c13280eea8bc280d1b392c6b9e6ba3a5a',
        'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f454d370c8d9fc323a41450f8d513eafeb5b0697390c1e505a0d4ddc71f566607',
      ],
      [
        'R not canonical, hashed as canonical',
        false,
        mixed,
        '84b698d39be126ff55fe45079e6c8bf64a0d7db6994560b4e96b7021eb39c1a1',
        'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f084d5b99c2a9463d9c8bd5026916996984eeec87ddf1d3be329006ace1b37b09',
      ],
    ];
    for (const [what, expected, key, message, signature] of cases) {
      assert.equal(verifyEd25519(hex(signature), hex(message), hex(key)), expected, what);
    }
  });

  test('agrees with OpenSSL on honest keys, whatever bit is changed', () => {
    const header = hex('302a300506032b6570032100');
    fc.assert(
      fc.property(bytes32, fc.uint8Array(), fc.nat(511), fc.boolean(), (seed, message, bit, change) => {
        const signature = ed25519.sign(message, seed);
        if (change) signature[bit >> 3]! ^= 1 << (bit & 7);
        const publicKey = ed25519.getPublicKey(seed);
        const native = createPublicKey({
          key: Buffer.concat([header, publicKey]),
          format: 'der',
          type: 'spki',
        });
        const answer = verifyEd25519(signature, message, publicKey);
        assert.equal(answer, verifyNatively(null, message, native, signature));
        assert.equal(answer, !change);
      }),
      { numRuns: 30 },
    );
  });
});

describe('ECDSA over secp256k1', () => {
  const order = secp256k1.Point.Fn.ORDER;
  const bytesOf = (value: bigint) => hex(value.toString(16).padStart(64, '0'));
  const numberOf = (bytes: Uint8Array) => BigInt(`0x${bytesToHex(bytes)}`);

  test('both engines recover the signer and agree with plain verification; n-s is taken with the other id', async () => {
    const engines = [loadSystemEngine(), loadNativeEngine(), pureEngine].filter(
      (engine) => engine !== undefined,
    );
    fc.assert(
      fc.property(secretKey, bytes32, fc.nat(511), (secret, digest, bit) => {
        const key = secp256k1.getPublicKey(secret);
        const signed = secp256k1.sign(digest, secret, { prehash: false, format: 'recovered' });
        const rs = signed.subarray(1);
        const twin = Uint8Array.of(...rs.subarray(0, 32), ...bytesOf(order - numberOf(rs.subarray(32))));
        const verifyPlainly = (signature: Uint8Array) =>
          secp256k1.verify(signature, digest, key, { prehash: false, lowS: false, format: 'compact' });
        const bad = rs.with(bit >> 3, rs[bit >> 3]! ^ (1 << (bit & 7)));
        for (const engine of engines) {
          for (const signature of [rs, twin, bad]) {
            assert.equal(verifyPlainly(signature), signature !== bad);
            assert.equal(verifyEcdsa(digest, signature, key, engine), signature !== bad, engine.name);
          }
          assert.deepEqual(recoverCompressedKey(digest, rs, signed[0], engine), key, engine.name);
          assert.deepEqual(recoverCompressedKey(digest, twin, 1 - signed[0]!, engine), key, engine.name);
        }
      }),
      { numRuns: 15 },
    );
  });

  test('r and s are in [1, n-1], the key is compressed', () => {
    const secret = new Uint8Array(32).fill(0x11);
    const digest = new Uint8Array(32).fill(7);
    const key = secp256k1.getPublicKey(secret);
    const good = secp256k1.sign(digest, secret, { prehash: false });
    const part = (at: number) => good.subarray(at, at + 32);
    for (const scalar of [0n, order, order + 1n, 2n ** 256n - 1n]) {
      for (const bad of [
        Uint8Array.of(...bytesOf(scalar), ...part(32)),
        Uint8Array.of(...part(0), ...bytesOf(scalar)),
      ]) {
        assert.throws(() => verifyEcdsa(digest, bad, key), RangeError);
        assert.throws(() => recoverCompressedKey(digest, bad, 0), RangeError);
      }
    }
    for (const id of [undefined, -1, 2, 3, 0.5]) {
      assert.throws(() => recoverCompressedKey(digest, good, id), RangeError);
    }
    assert.equal(verifyEcdsa(digest, good, key), true);
    assert.equal(verifyEcdsa(digest, good, secp256k1.getPublicKey(secret, false)), false);
    assert.equal(verifyEcdsa(digest, good, new Uint8Array(33)), false);
    assert.throws(() => verifyEcdsa(digest, good.subarray(1), key), RangeError);
  });
});
