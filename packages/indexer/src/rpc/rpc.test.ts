import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import fc from 'fast-check';
import { readRange } from '../decode/range.ts';
import { readAnswers } from './answers.ts';
import { classifyError, classifyStatus, RpcError, type RpcFailure } from './failures.ts';
import { INITIAL, type Learned, learnFromFailure, learnFromSuccess, RPC_LIMITS } from './limits.ts';
import { type Endpoint, RpcPool } from './pool.ts';

describe('what endpoints say', () => {
  for (const [message, expected] of [
    ['query returned more than 10000 results', { kind: 'range_too_large' }],
    ['exceed maximum block range: 5000', { kind: 'range_too_large', blocks: 5000 }],
    ['eth_getLogs is limited to a 10,000 range', { kind: 'range_too_large', blocks: 10_000 }],
    [
      'Log response size exceeded. this block range should work: [0x10, 0x1f]',
      { kind: 'range_too_large', blocks: 16, isHere: true },
    ],
    [
      'You can make eth_getLogs requests with up to a 2K block range and no limit on the response size',
      { kind: 'range_too_large', blocks: 2_000 },
    ],
    ['block range too large, limited to 10 k blocks', { kind: 'range_too_large', blocks: 10_000 }],
    [
      'you can make eth_getLogs requests with up to a 10 block range',
      { kind: 'range_too_large', blocks: 10 },
    ],
    ['query timeout exceeded', { kind: 'range_too_large' }],
    ['daily request count exceeded, request rate limited', { kind: 'rate_limited' }],
    ['Your app has exceeded its compute units per second capacity', { kind: 'rate_limited' }],
    ['header not found', { kind: 'stale' }],
    ['BlockOutOfRangeError: block height is 101 but requested was 255', { kind: 'stale' }],
    ['the method eth_getBlockReceipts does not exist/is not available', { kind: 'unsupported' }],
    ['nothing that we know', { kind: 'refused', reason: 'nothing that we know' }],
  ] as const)
    test(message, () => {
      assert.deepEqual(classifyError({ code: -32000, message }), expected);
    });

  test('statuses', () => {
    assert.deepEqual(classifyStatus(429, '7'), { kind: 'rate_limited', retryAfterMs: 7_000 });
    assert.deepEqual(classifyStatus(429, '999999'), { kind: 'rate_limited', retryAfterMs: 120_000 });
    assert.deepEqual(classifyStatus(429, 'Wed, 21 Oct'), { kind: 'rate_limited' });
    assert.deepEqual(classifyStatus(413, null), { kind: 'range_too_large' });
    assert.deepEqual(classifyStatus(502, null), { kind: 'unreachable', reason: 'HTTP 502' });
  });

  test('answers of a batch are put in order; a refusal of the whole is one', () => {
    const bytes = (value: unknown) => Buffer.from(JSON.stringify(value));
    assert.deepEqual(
      readAnswers(
        bytes([
          { id: 1, result: 'b' },
          { id: 0, result: 'a' },
        ]),
        2,
      ),
      ['a', 'b'],
    );
    assert.ok(readAnswers(bytes([{ id: 1, result: 'b' }]), 2)[0] instanceof RpcError);
    assert.throws(() => readAnswers(bytes({ id: null, error: { code: 429 } }), 2), RpcError);
  });
});

test('work for a block that no endpoint has any more ends at once: its caller has to look again', async () => {
  const pool = new RpcPool({
    urls: ['http://127.0.0.1:9/a', 'http://127.0.0.1:9/b'],
    timeoutMs: 1_000,
    restAfterLieMs: 0,
    log: createLogger('test', 'silent'),
    signal: new AbortController().signal,
  });
  const [first, second] = pool.endpoints as [Endpoint, Endpoint];
  first.head = 10;
  assert.equal(await pool.run(async (one) => one.name, { head: 11 }), second.name);
  second.head = 10;
  await assert.rejects(
    pool.run(async () => 'never', { head: 11 }),
    { code: 'UPSTREAM_UNAVAILABLE' },
  );
  const shrunk = pool.run(
    async () => {
      first.head = 4;
      second.head = 4;
      throw new RpcError({ kind: 'rate_limited', retryAfterMs: 0 });
    },
    { head: 10 },
  );
  await assert.rejects(shrunk, { code: 'UPSTREAM_UNAVAILABLE' });
});

test('a rest is as long as it is, whatever the clock is set to', (t) => {
  const pool = new RpcPool({
    urls: ['http://127.0.0.1:9/a'],
    timeoutMs: 1_000,
    restAfterLieMs: 3_600_000,
    log: createLogger('test', 'silent'),
    signal: new AbortController().signal,
  });
  const [first] = pool.endpoints as [Endpoint];
  first.note({ kind: 'lie', reason: '' }, 0);
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 7_200_000 });
  assert.equal(pool.isResting(first), true);
});

describe('what is learned of an endpoint', () => {
  const failure: fc.Arbitrary<RpcFailure> = fc.oneof(
    fc.record({ kind: fc.constant('range_too_large' as const), blocks: fc.integer({ min: 1, max: 1e6 }) }),
    fc.record({
      kind: fc.constant('rate_limited' as const),
      retryAfterMs: fc.integer({ min: 0, max: 120_000 }),
    }),
    fc.constantFrom<RpcFailure>(
      { kind: 'range_too_large' },
      { kind: 'timeout' },
      { kind: 'stale' },
      { kind: 'unsupported' },
      { kind: 'lie', reason: '' },
      { kind: 'unreachable', reason: '' },
    ),
  );

  test('stays within its limits, whatever happens', () => {
    const step = fc.option(fc.tuple(failure, fc.integer({ min: 0, max: 100_000 })));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        let learned: Learned = INITIAL;
        let nowMs = 0;
        for (const one of steps) {
          nowMs += 10;
          const context = { nowMs, random: 0.5, restAfterLieMs: 60_000 };
          learned = one
            ? learnFromFailure(learned, one[0], { ...context, blocks: one[1] })
            : learnFromSuccess(learned);
          assert.ok(learned.rangeBlocks >= 1 && learned.rangeBlocks <= RPC_LIMITS.rangeBlocks);
          assert.ok(learned.concurrency >= 1 && learned.concurrency <= RPC_LIMITS.concurrencyMax);
          assert.ok(learned.batchCalls >= 1 && learned.restUntilMs <= nowMs + 120_000);
        }
      }),
    );
  });

  test('a range that was too large is never asked for again', () => {
    const context = { nowMs: 0, random: 0, restAfterLieMs: 0 };
    const learned = learnFromFailure(INITIAL, { kind: 'range_too_large' }, { ...context, blocks: 1_000 });
    assert.equal(learned.rangeBlocks, 500);
    const told = learnFromFailure(
      learned,
      { kind: 'range_too_large', blocks: 7 },
      { ...context, blocks: 500 },
    );
    assert.equal(told.rangeBlocks, 7);
    // What one dense place takes is no limit of the endpoint.
    const here = { kind: 'range_too_large', blocks: 1, isHere: true } as const;
    let dense = learnFromFailure(INITIAL, here, { ...context, blocks: 500 });
    assert.equal(dense.rangeBlocks, 1);
    for (let turn = 0; turn < 2 * RPC_LIMITS.successesPerRaise; turn++) dense = learnFromSuccess(dense);
    assert.equal(dense.rangeBlocks, 4);
  });
});

test('no answer of an endpoint makes reading it throw', () => {
  const task = { from: 0, to: 1, headers: [0, 1], known: [], claims: [], claimsKey: 'fuzz', blooms: true };
  const log = fc.record({
    address: fc.oneof(fc.constant(`0x${'a'.repeat(40)}`), fc.jsonValue()),
    topics: fc.oneof(fc.array(fc.constant(`0x${'b'.repeat(64)}`), { maxLength: 5 }), fc.jsonValue()),
    data: fc.constantFrom('0x', '0x0', '0xzz', `0x${'00'.repeat(32)}`),
    blockNumber: fc.constantFrom('0x0', '0x1', '0x2', '-1', 'latest', '0xffffffffffffffffff'),
    blockHash: fc.constant(`0x${'c'.repeat(64)}`),
    logIndex: fc.constantFrom('0x0', '0x1'),
    transactionHash: fc.constant(`0x${'d'.repeat(64)}`),
  });
  const answer = fc.record({
    id: fc.integer({ min: -1, max: 3 }),
    result: fc.oneof(fc.jsonValue(), fc.array(log)),
  });
  const body = fc.oneof(
    fc.array(answer, { maxLength: 4 }).map((value) => Buffer.from(JSON.stringify(value))),
    fc.uint8Array({ maxLength: 60 }),
  );
  fc.assert(
    fc.property(body, (bytes) => void readRange({ ...task, body: bytes })),
    { numRuns: 500 },
  );
});
