import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { bytesToHex, hexToBytes, VRF_SUITES, verifyVrfToken } from '@skerry/protocol';
import { valuesOfToken } from '../node/vrf/testing/verifier.ts';
import { createTestCore, type TestCore } from '../testing/core.ts';

describe('verifiable random values', () => {
  let core: TestCore;
  before(async () => {
    core = await createTestCore();
  });
  after(() => core[Symbol.asyncDispose]());

  const generate = (body: unknown) => core.post('/vrf/generate', JSON.stringify(body));
  const verify = (body: unknown) => core.post('/vrf/verify', JSON.stringify(body));

  test('the same request has the same answer, which the node and anybody else verifies', async () => {
    const request = { seed: 'draw 7', min: 1, max: 6, count: 5 };
    const { status, body } = await generate(request);
    assert.equal(status, 200);
    const { value, values, proof, public_key, ...rest } = body;
    assert.deepEqual(rest, { ...request, status: 'success' });
    assert.equal(value, values[0]);
    assert.deepEqual((await generate(request)).body, body);
    const offline = verifyVrfToken({ seed: request.seed, value, values, proof });
    assert.ok(offline.valid && offline.publicKey === public_key);
    const { keys } = (await core.get('/vrf/keys')).body;
    const { from, ...key } = keys[0];
    assert.equal(keys.length, 1);
    assert.ok(Math.abs(from - Date.now() / 1000) < 600, 'in use since the node was made');
    assert.deepEqual(key, { suite: VRF_SUITES.edwards25519Tai.name, public_key, until: null });
    const verdict = await verify({ seed: request.seed, value, proof });
    assert.deepEqual(verdict.body, {
      valid: true,
      status: 'success',
      suite: VRF_SUITES.edwards25519Tai.name,
      public_key,
      min: 1,
      max: 6,
      count: 5,
      values,
    });
    assert.equal((await verify({ seed: request.seed, values, proof })).body.valid, true);
  });

  test('a verifier written from the RFC alone reads the same values from the tokens', async () => {
    const requests = [
      { seed: 'a' },
      { seed: 'ünïcödé \u{1f3b2}', min: -10, max: 10, count: 9 },
      { seed: 'b', min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER, count: 20 },
      { seed: 'c', min: 7, max: 7, count: 2 },
      ...Array.from({ length: 6 }, (_, i) => ({ seed: `many ${i}`, min: 0, max: 2 ** 52 + i, count: 17 })),
    ];
    for (const request of requests) {
      const { body } = await generate(request);
      assert.deepEqual(valuesOfToken(request.seed, body.proof), body.values, request.seed);
      assert.equal(valuesOfToken(`${request.seed}.`, body.proof), undefined);
    }
  });

  test('both verifiers refuse a token with any byte changed', async () => {
    const { body } = await generate({ seed: 'changed', min: 1, max: 100 });
    const bytes = hexToBytes(body.proof)!;
    for (let at = 0; at < bytes.length; at++) {
      const changed = bytes.slice();
      changed[at]! ^= 1 << (at % 8);
      const proof = `0x${bytesToHex(changed)}`;
      assert.equal((await verify({ ...claimOf(body), proof })).body.valid, false, `byte ${at}`);
      // The one written for this test takes a hundred times as long: it is asked of a byte in each part of the token.
      if (at % 5 === 0) assert.equal(valuesOfToken(body.seed, proof), undefined, `byte ${at}`);
    }
  });

  test('what does not hold is answered with its reason, and by a key of nobody known it is not valid', async () => {
    const { body } = await generate({ seed: 's', min: 0, max: 1000, count: 2 });
    const claim = claimOf(body);
    // A key of its own, which nobody has told this node of.
    const other = await createTestCore();
    const foreign = (
      await other.post('/vrf/generate', JSON.stringify({ seed: 's', min: 0, max: 1000, count: 2 }))
    ).body;
    await other[Symbol.asyncDispose]();
    assert.notEqual(foreign.public_key, body.public_key);
    const cases: [Record<string, unknown>, string][] = [
      [{ ...claim, value: body.value + 1 }, 'VRF_VALUE_MISMATCH'],
      [{ ...claim, values: [body.value] }, 'VRF_VALUE_MISMATCH'],
      [{ seed: 's', proof: body.proof }, 'VRF_VALUE_MISMATCH'],
      [{ ...claim, seed: 't' }, 'VRF_PROOF_REFUTED'],
      [{ ...claim, proof: '0x00' }, 'VRF_PROOF_MALFORMED'],
      [{ ...claim, proof: '' }, 'VRF_PROOF_MALFORMED'],
      [claimOf(foreign), 'VRF_KEY_UNKNOWN'],
    ];
    for (const [one, code] of cases) {
      const answer = await verify(one);
      assert.deepEqual(
        [answer.status, answer.body.valid, answer.body.status, answer.body.reason?.code, answer.body.values],
        [200, false, 'success', code, undefined],
        code,
      );
    }
  });

  test('a request out of range is refused, and nothing is converted', async () => {
    const cases: [unknown, string][] = [
      [{ seed: 's', min: 2, max: 1 }, 'INVALID_PARAMETERS'],
      [{ seed: 's', min: '1' }, 'INVALID_PARAMETERS'],
      [{ seed: 's', max: 1.5 }, 'INVALID_PARAMETERS'],
      [{ seed: 's', max: 1e300 }, 'INVALID_PARAMETERS'],
      [{ seed: 's', count: 0 }, 'INVALID_PARAMETERS'],
      [{ seed: 's', count: 1001 }, 'INVALID_PARAMETERS'],
      [{ seed: 7 }, 'INVALID_PARAMETERS'],
      [{ seed: '' }, 'INVALID_PARAMETERS'],
      [{ seed: 'x'.repeat(1025) }, 'INVALID_PARAMETERS'],
      [{ seed: 's', sides: 6 }, 'UNKNOWN_FIELD'],
      [{}, 'INVALID_PARAMETERS'],
      [[], 'INVALID_JSON'],
      [null, 'INVALID_JSON'],
    ];
    for (const [body, code] of cases) {
      const answer = await generate(body);
      assert.deepEqual([answer.status, answer.body.code], [400, code], JSON.stringify(body));
    }
    assert.equal((await core.post('/vrf/generate', '{')).body.code, 'INVALID_JSON');
    assert.equal((await core.post('/vrf/generate', '')).status, 400);
    for (const body of [
      { seed: 's' },
      { seed: 's', value: '1', proof: '0x' },
      { value: 1, proof: 5, seed: 's' },
    ])
      assert.equal((await verify(body)).body.code, 'INVALID_PARAMETERS');
    const big = await generate({ seed: 'x'.repeat(70_000) });
    assert.deepEqual([big.status, big.body.code], [413, 'BODY_TOO_LARGE']);
    const longest = await generate({ seed: 'é'.repeat(512), count: 1000 });
    assert.equal(longest.body.values.length, 1000);
    assert.equal((await verify(claimOf(longest.body))).body.valid, true);
  });
});

function claimOf({ seed, value, values, proof }: Record<string, never>) {
  return { seed, value, values, proof };
}
