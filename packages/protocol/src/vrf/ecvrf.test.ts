import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import { ED25519_TORSION_SUBGROUP, ed25519 } from '@noble/curves/ed25519.js';
import fc from 'fast-check';
import { bytesToHex, hexToBytes } from '../hex.ts';
import { createEcvrf, type Ecvrf, proveInSteps } from './ecvrf.ts';
import { pureEdwards25519 } from './edwards25519.ts';
import { concatBytes, type VrfGroup } from './group.ts';
import { multiplyLittleEndian } from './limbs.ts';
import { createSodiumGroup, loadNativeVrfEngine, loadSodium } from './native.ts';
import { pureP256 } from './p256.ts';
import { pureVrfEngine, VRF_SUITES, type VrfEngine } from './suites.ts';
import { RFC_VECTORS } from './testing/vectors.ts';

const bytes = (hex: string) => hexToBytes(hex)!;
const native = await loadNativeVrfEngine();
assert.ok(native, 'this platform has a prebuilt libsodium; both engines are tested here');
const sodiumGroup = createSodiumGroup((await loadSodium())!);
const engines: VrfEngine[] = [pureVrfEngine, native];

const ORDER = ed25519.Point.Fn.ORDER;
const fromLittleEndian = (hex: string) => BigInt(`0x${bytesToHex(bytes(hex).reverse()) || '0'}`);

function steps<P>(group: VrfGroup<P>, suiteId: number, secretKey: string, alpha: string) {
  const suite = Object.values(VRF_SUITES).find((one) => one.id === suiteId)!;
  const secret = group.deriveSecret(bytes(secretKey));
  const publicKey = group.encode(group.multiplyBase(secret.scalar));
  const all = proveInSteps(suite, group, secret, publicKey, bytes(alpha));
  const texts = Object.fromEntries(Object.entries(all).map(([name, value]) => [name, bytesToHex(value)]));
  return { ...texts, publicKey: bytesToHex(publicKey), x: bytesToHex(secret.scalar) } as Record<
    string,
    string
  >;
}

describe('vectors of RFC 9381', () => {
  for (const vector of RFC_VECTORS) {
    const { example, suiteId, secretKey, alpha, k } = vector;
    const groups: [string, VrfGroup<never>][] =
      suiteId === 1
        ? [['pure', pureP256 as never]]
        : [
            ['pure', pureEdwards25519 as never],
            ['native', sodiumGroup as never],
          ];
    for (const [name, group] of groups) {
      test(`example ${example}, every step, ${name}`, () => {
        const got = steps(group, suiteId, secretKey, alpha);
        const reduced =
          suiteId === 3 ? (fromLittleEndian(k) % ORDER).toString(16).padStart(64, '0') : undefined;
        const expectedNonce = reduced === undefined ? k : bytesToHex(bytes(reduced).reverse());
        assert.equal(got.publicKey, vector.publicKey);
        if (vector.x !== undefined) assert.equal(got.x, vector.x);
        assert.deepEqual(
          [got.h, got.nonce, got.u, got.v, got.proof, got.output],
          [vector.h, expectedNonce, vector.u, vector.v, vector.proof, vector.output],
        );
      });
    }
    for (const engine of engines) {
      test(`example ${example}, proved and verified, ${engine.name}`, () => {
        const ecvrf = engine.find(suiteId)!;
        const prover = ecvrf.createProver(bytes(secretKey));
        const { proof, output } = prover.prove(bytes(alpha));
        assert.deepEqual(
          [bytesToHex(prover.publicKey), bytesToHex(proof), bytesToHex(output)],
          [vector.publicKey, vector.proof, vector.output],
        );
        assert.deepEqual(
          [prover.publicKey.length, proof.length, output.length],
          [ecvrf.publicKeyBytes, ecvrf.proofBytes, ecvrf.outputBytes],
        );
        const verified = ecvrf.verify(bytes(vector.publicKey), bytes(alpha), bytes(vector.proof));
        assert.deepEqual(verified, output);
      });
    }
  }
});

const anySuite = fc.constantFrom(...Object.values(VRF_SUITES).map(({ id }) => id));
const anyKey = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((key) => {
  // Below the order of P-256 and not zero: a secret key of every suite.
  key[0]! &= 0x7f;
  key[31]! |= 1;
  return key;
});
const anyAlpha = fc.uint8Array({ maxLength: 80 });

/** One verdict, which both engines must share. */
function verdict(suiteId: number, publicKey: Uint8Array, alpha: Uint8Array, proof: Uint8Array) {
  const verdicts = engines.map((engine) => engine.find(suiteId)!.verify(publicKey, alpha, proof));
  assert.deepEqual(verdicts[0], verdicts[1], 'both engines judge alike');
  return verdicts[0];
}

describe('both engines', () => {
  test('prove the same, byte for byte, and each accepts what the other proved', () => {
    fc.assert(
      fc.property(anySuite, anyKey, anyAlpha, (suiteId, key, alpha) => {
        const [a, b] = engines.map((engine) => engine.find(suiteId)!.createProver(key));
        const proved = a!.prove(alpha);
        assert.deepEqual(b!.prove(alpha), proved);
        assert.deepEqual(verdict(suiteId, a!.publicKey, alpha, proved.proof), proved.output);
      }),
      { numRuns: 40 },
    );
  });

  test('refuse a proof with any bit changed, under another key, for another input, of another suite', () => {
    const place = fc.record({ byte: fc.nat(), bit: fc.integer({ min: 0, max: 7 }) });
    fc.assert(
      fc.property(anySuite, anyKey, anyAlpha, place, (suiteId, key, alpha, { byte, bit }) => {
        const prover = pureVrfEngine.find(suiteId)!.createProver(key);
        const { proof } = prover.prove(alpha);
        const changed = proof.slice();
        changed[byte % proof.length]! ^= 1 << bit;
        assert.equal(verdict(suiteId, prover.publicKey, alpha, changed), undefined);
        assert.equal(
          verdict(suiteId, prover.publicKey, concatBytes(alpha, Uint8Array.of(0)), proof),
          undefined,
        );
        const otherKey = prover.publicKey.slice();
        otherKey[byte % otherKey.length]! ^= 1 << bit;
        assert.equal(verdict(suiteId, otherKey, alpha, proof), undefined);
        if (suiteId !== 1) assert.equal(verdict(7 - suiteId, prover.publicKey, alpha, proof), undefined);
      }),
      { numRuns: 40 },
    );
  });

  test('never throw on bytes of strangers', () => {
    const anyBytes = fc.uint8Array({ maxLength: 90 });
    const proofLike = fc.oneof(
      anyBytes,
      fc.uint8Array({ minLength: 80, maxLength: 81 }),
      fc.uint8Array({ minLength: 48, maxLength: 48 }).map((start) => concatBytes(start, new Uint8Array(32))),
    );
    const keyLike = fc.oneof(anyBytes, fc.uint8Array({ minLength: 32, maxLength: 33 }));
    fc.assert(
      fc.property(anySuite, keyLike, anyAlpha, proofLike, (suiteId, key, alpha, proof) => {
        assert.equal(verdict(suiteId, key, alpha, proof), undefined);
      }),
      { numRuns: 150 },
    );
  });

  test('refuse keys of small order and encodings that are not the canonical one', () => {
    const { proof } = pureVrfEngine.find(3)!.createProver(new Uint8Array(32).fill(7)).prove(bytes('00'));
    const notCanonical = [0, 1].map((y) => {
      const encoding = new Uint8Array(32).fill(0xff);
      encoding[0] = 0xed + y;
      encoding[31] = 0x7f;
      return bytesToHex(encoding);
    });
    const minusZero = `01${'00'.repeat(30)}80`;
    for (const key of [...ED25519_TORSION_SUBGROUP, ...notCanonical, minusZero]) {
      for (const zeroed of [proof, new Uint8Array(80), concatBytes(bytes(key), new Uint8Array(48))]) {
        assert.equal(verdict(3, bytes(key), bytes('00'), zeroed), undefined, key);
      }
    }
  });

  test('agree on a gamma with a torsion component, which only a dishonest key holder makes', () => {
    // The RFC's verifier takes such a proof when its challenge happens to be a multiple of the torsion's order.
    const suite = VRF_SUITES.edwards25519Tai;
    const torsion = ed25519.Point.fromHex(ED25519_TORSION_SUBGROUP[4]!);
    const secret = pureEdwards25519.deriveSecret(new Uint8Array(32).fill(9));
    const crooked = createEcvrf(suite, {
      ...pureEdwards25519,
      multiply(point, scalar) {
        const product = pureEdwards25519.multiply(point, scalar);
        return scalar === secret.scalar ? product.add(torsion) : product;
      },
      deriveSecret: () => secret,
    } as typeof pureEdwards25519);
    const prover = crooked.createProver(new Uint8Array(32).fill(9));
    const honest = pureVrfEngine.find(3)!.createProver(new Uint8Array(32).fill(9));
    let accepted = 0;
    for (let i = 0; i < 24; i++) {
      const alpha = Uint8Array.of(i);
      const output = verdict(3, prover.publicKey, alpha, prover.prove(alpha).proof);
      if (output === undefined) continue;
      accepted++;
      assert.deepEqual(output, honest.prove(alpha).output, 'there is still only one output');
    }
    assert.ok(accepted > 0 && accepted < 24, `${accepted} of 24`);
  });
});

test('secret keys of a wrong length or range are refused', () => {
  for (const engine of engines) {
    for (const { id } of Object.values(VRF_SUITES)) {
      const ecvrf = engine.find(id) as Ecvrf;
      assert.throws(() => ecvrf.createProver(new Uint8Array(31)), RangeError);
      assert.throws(() => ecvrf.createProver(new Uint8Array(64)), RangeError);
    }
    assert.throws(() => engine.find(1)!.createProver(new Uint8Array(32)), RangeError);
    assert.throws(() => engine.find(1)!.createProver(new Uint8Array(32).fill(0xff)), RangeError);
    assert.equal(engine.find(2), undefined);
  }
});

test('products of limbs are those of BigInt', () => {
  const number = (size: number) =>
    fc.oneof(
      fc.uint8Array({ minLength: size, maxLength: size }),
      fc.constantFrom(0x00, 0xff, 0x7f, 0x80).map((byte) => new Uint8Array(size).fill(byte)),
    );
  const value = (all: Uint8Array) => fromLittleEndian(bytesToHex(all));
  fc.assert(
    fc.property(number(16), number(32), (a, b) => {
      const product = multiplyLittleEndian(a, b, 64);
      assert.equal(product.length, 64);
      assert.equal(value(product), value(a) * value(b));
    }),
    { numRuns: 500 },
  );
});

test('the hash of the native engine is SHA-512', () => {
  const text = Buffer.from('any bytes');
  assert.deepEqual(Buffer.from(sodiumGroup.hash(text)), createHash('sha512').update(text).digest());
});
