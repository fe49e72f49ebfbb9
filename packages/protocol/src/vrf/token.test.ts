import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { AppError } from '../errors.ts';
import { bytesToHex, hexToBytes } from '../hex.ts';
import { LIMITS } from '../limits.ts';
import { anyCharacter } from '../testing/characters.ts';
import { loadNativeVrfEngine } from './native.ts';
import { encodeVrfInput, parseVrfRequest, seedBytesOf } from './request.ts';
import { pureVrfEngine, VRF_SUITES } from './suites.ts';
import { createVrfAnswer, verifyVrfToken } from './token.ts';

const SAFE = Number.MAX_SAFE_INTEGER;
/** Verdicts are the same on both (ecvrf.test.ts); this one is quicker. */
const engine = (await loadNativeVrfEngine()) ?? pureVrfEngine;
const prover = engine.find(3)!.createProver(new Uint8Array(32).fill(1));
const answerTo = (body: unknown, by = prover) => createVrfAnswer(parseVrfRequest(body), by);
const reasonOf = (claim: Parameters<typeof verifyVrfToken>[0]) => {
  const verdict = verifyVrfToken(claim, engine);
  return verdict.valid ? 'valid' : verdict.reason.code;
};

const anySeed = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 });
const safe = fc.integer({ min: -SAFE, max: SAFE });
const anyRequest = fc
  .record({ seed: anySeed, a: safe, b: safe, count: fc.integer({ min: 1, max: 12 }) })
  .map(({ seed, a, b, count }) => ({ seed, min: Math.min(a, b), max: Math.max(a, b), count }));

describe('an answer', () => {
  test('verifies, says what was asked and by which key, and is the same each time, on every suite', () => {
    const anySuite = fc.constantFrom(...Object.values(VRF_SUITES));
    fc.assert(
      fc.property(anySuite, anyRequest, (suite, request) => {
        const by = engine.find(suite.id)!.createProver(new Uint8Array(32).fill(5));
        const answer = answerTo(request, by);
        assert.deepEqual(answerTo(request, by), answer);
        assert.equal(answer.value, answer.values[0]);
        const { seed, ...range } = request;
        const said = { suite: suite.name, publicKey: bytesToHex(by.publicKey), ...range };
        for (const one of [pureVrfEngine, engine]) {
          assert.deepEqual(verifyVrfToken(answer, one), { valid: true, values: answer.values, ...said });
        }
        const { value, values, proof } = answer;
        assert.equal(reasonOf({ seed, value, proof }), 'valid');
        assert.equal(reasonOf({ seed, values, proof }), 'valid');
        assert.equal(reasonOf({ seed, proof }), 'VRF_VALUE_MISMATCH');
      }),
      { numRuns: 30 },
    );
  });

  test('has a token of a known form', () => {
    const { proof } = answerTo({ seed: 'form', min: -2, max: 5, count: 3 });
    const range = `${'f'.repeat(15)}e${'0'.repeat(15)}50003`;
    assert.match(proof, new RegExp(`^0x0103${bytesToHex(prover.publicKey)}${range}[0-9a-f]{160}$`));
  });

  test('is another one for every other seed, range, count, key and suite', () => {
    const base = { seed: 'a', min: 0, max: SAFE, count: 1 };
    const variants = [{}, { seed: 'b' }, { seed: 'a ' }, { min: 1 }, { max: SAFE - 1 }, { count: 2 }];
    const values = variants.map((variant) => answerTo({ ...base, ...variant }).value);
    values.push(answerTo(base, engine.find(3)!.createProver(new Uint8Array(32).fill(2))).value);
    values.push(answerTo(base, engine.find(4)!.createProver(new Uint8Array(32).fill(1))).value);
    assert.equal(new Set(values).size, values.length);
  });

  test('no two requests have one input', () => {
    const inputOf = ({ seed, ...range }: { seed: string; min: number; max: number; count: number }) =>
      bytesToHex(encodeVrfInput(seedBytesOf(seed)!, range));
    fc.assert(
      fc.property(anyRequest, anyRequest, (a, b) => {
        assert.equal(inputOf(a) === inputOf(b), JSON.stringify(a) === JSON.stringify(b));
      }),
    );
  });
});

describe('tampering is caught', () => {
  test('every byte of a token, in every bit', () => {
    const answer = answerTo({ seed: 'lottery', min: 1, max: 49, count: 6 });
    const bytes = hexToBytes(answer.proof)!;
    const seen = new Set<string>();
    for (let at = 0; at < bytes.length; at++) {
      for (let bit = 0; bit < 8; bit++) {
        const changed = bytes.slice();
        changed[at]! ^= 1 << bit;
        const reason = reasonOf({ ...answer, proof: `0x${bytesToHex(changed)}` });
        assert.notEqual(reason, 'valid', `byte ${at}, bit ${bit}`);
        seen.add(reason);
      }
    }
    assert.deepEqual([...seen].sort(), ['VRF_PROOF_MALFORMED', 'VRF_PROOF_REFUTED']);
  });

  test('shorter, longer, empty, in other digits, of another version or suite', () => {
    const answer = answerTo({ seed: 'lottery' });
    const { proof } = answer;
    const malformed = [
      '',
      '0x',
      '0x01',
      '0x0103',
      proof.slice(2),
      proof.slice(0, -1),
      proof.slice(0, -2),
      `${proof}00`,
      proof.toUpperCase(),
      proof.replace('0x', '0X'),
      `${proof}\n`,
      ` ${proof}`,
      `0x02${proof.slice(4)}`,
      `0x0102${proof.slice(6)}`,
      `0x0101${proof.slice(6)}`,
    ];
    for (const text of malformed) {
      assert.equal(reasonOf({ ...answer, proof: text }), 'VRF_PROOF_MALFORMED', JSON.stringify(text));
    }
  });

  test('the seed, the value, the list, its order and its length', () => {
    const answer = answerTo({ seed: 'lottery', min: 1, max: 1_000_000, count: 3 });
    const { seed, value, values, proof } = answer;
    for (const other of ['lotterY', 'lottery ', '', 'x'.repeat(LIMITS.vrfSeedBytes + 1), '\ud800'])
      assert.equal(reasonOf({ ...answer, seed: other }), 'VRF_PROOF_REFUTED', other);
    const mismatches = [
      { value: value + 1 },
      { value: -value },
      { value: Number.NaN },
      { value: values[1]! },
      { values: [] },
      { values: values.slice(0, 2) },
      { values: [...values, 1] },
      { values: values.toReversed() },
      { value, values: [value, values[1]! + 1, values[2]!] },
    ];
    for (const mismatch of mismatches)
      assert.equal(reasonOf({ seed, proof, ...mismatch }), 'VRF_VALUE_MISMATCH', JSON.stringify(mismatch));
  });

  test('whatever strangers send gets a verdict', () => {
    const hex = fc.uint8Array({ maxLength: 160 }).map((bytes) => `0x${bytesToHex(bytes)}`);
    const headed = fc.uint8Array({ minLength: 130, maxLength: 130 }).map((b) => `0x0103${bytesToHex(b)}`);
    fc.assert(
      fc.property(
        fc.string({ unit: anyCharacter }),
        fc.oneof(fc.string(), hex, headed),
        fc.oneof(fc.double(), fc.integer()),
        fc.option(fc.array(fc.double()), { nil: undefined }),
        (seed, proof, value, values) => {
          assert.notEqual(reasonOf({ seed, proof, value, values }), 'valid');
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('a request', () => {
  test('has one value from 0 to 2^53 - 1 where nothing else is said', () => {
    assert.deepEqual(parseVrfRequest({ seed: 's' }), { seed: 's', min: 0, max: SAFE, count: 1 });
    assert.deepEqual(parseVrfRequest({ seed: 's', min: -5, max: -5, count: 1000 }), {
      seed: 's',
      min: -5,
      max: -5,
      count: 1000,
    });
  });

  test('is refused with a sentence that says why', () => {
    const cases: [unknown, RegExp][] = [
      [{ seed: 's', min: 5, max: 4 }, /min \(5\) is above max \(4\)/],
      [{ seed: 's', min: SAFE, max: 0 }, /is above max/],
      [{ seed: 's', max: -1 }, /min \(0\) is above max \(-1\)/],
      [{ seed: 's', min: 0.5 }, /min must be an integer from -9007199254740991 to 9007199254740991/],
      [{ seed: 's', max: '5' }, /max must be an integer/],
      [{ seed: 's', max: 2 ** 53 }, /max must be an integer from /],
      [{ seed: 's', min: -1e300 }, /min must be an integer from -9007199254740991 to /],
      [{ seed: 's', max: Number.POSITIVE_INFINITY }, /max must be/],
      [{ seed: 's', count: 0 }, /count must be an integer from 1 to 1000/],
      [{ seed: 's', count: 1001 }, /count must be an integer from 1 to 1000/],
      [{ seed: 's', count: 1.5 }, /count must be an integer from 1 to 1000/],
      [{ seed: '' }, /seed is a text of 1 to 1024 bytes/],
      [{ seed: 'é'.repeat(513) }, /seed is a text of 1 to 1024 bytes/],
      [{ seed: 'a\udc00' }, /without lone surrogates/],
      [{ seed: 5 }, /seed must be string/],
      [{}, /lacks "seed"/],
      [{ seed: 's', sides: 6 }, /no field "sides"/],
      [[], /must be object/],
      [null, /must be object/],
    ];
    for (const [body, sentence] of cases) {
      assert.throws(
        () => parseVrfRequest(body),
        (error) =>
          error instanceof AppError &&
          error.httpStatus === 400 &&
          sentence.test(error.message || '') &&
          ['INVALID_PARAMETERS', 'UNKNOWN_FIELD'].includes(error.code),
        JSON.stringify(body),
      );
    }
    assert.equal(parseVrfRequest({ seed: 'é'.repeat(512) }).seed.length, 512);
  });
});
