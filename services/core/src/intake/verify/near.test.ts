import assert from 'node:assert/strict';
import { test } from 'node:test';
import { signMessage } from '@skerry/client';
import { signers } from '../../testing/core.ts';
import { verifyNear } from './near.ts';
import { inlineVerifier, type Verifier } from './verifier.ts';

const NOW = Math.floor(Date.now() / 1000);
const bodyOf = (content: string) =>
  Buffer.from(signMessage({ type: 'POST', content: { type: 'note', content } }, signers.alice).body);

/** Verifies when it is told to, and counts. */
function createThreads() {
  const state = { given: 0, isClosed: false, go: Promise.resolve() };
  const verify: Verifier['verify'] = async (...one) => {
    state.given++;
    await state.go;
    return inlineVerifier.verify(...one);
  };
  const threads: Verifier = {
    ...{ verify, verifyShared: verify, verifyAll: inlineVerifier.verifyAll },
    async [Symbol.asyncDispose]() {
      state.isClosed = true;
    },
  };
  return { state, threads };
}

test('one that comes alone is verified where it is read; a crowd, and what comes while it is away, by the threads', async () => {
  const { state, threads } = createThreads();
  let nowMs = 0;
  await using verifier = verifyNear(threads, () => nowMs++);
  const body = bodyOf('small');
  const verify = () => verifier.verify(body, NOW);
  const alone = await verify();
  assert.deepEqual([state.given, alone], [0, await inlineVerifier.verify(body, NOW)]);
  // It took all that was left over; what has come back since is enough for one more.
  const go = Promise.withResolvers<void>();
  state.go = go.promise;
  const crowd = [verify(), verify(), verify()];
  assert.equal(state.given, 2);
  nowMs += 1_000;
  crowd.push(verify());
  assert.equal(state.given, 3, 'it gathers with those that are away');
  go.resolve();
  for (const one of await Promise.all(crowd)) assert.deepEqual(one, alone);
  nowMs += 1_000;
  await verify();
  assert.equal(state.given, 3);
});

test('a few that come together are verified where they are read, as far as this thread has time left over', async () => {
  const { state, threads } = createThreads();
  let nowMs = 0;
  // Each takes a quarter of a millisecond.
  await using verifier = verifyNear(threads, () => (nowMs += 0.25));
  const verify = () => verifier.verify(bodyOf('small'), NOW);
  await Promise.all(Array.from({ length: 4 }, verify));
  assert.equal(state.given, 0);
  nowMs += 3;
  await Promise.all(Array.from({ length: 4 }, verify));
  assert.equal(state.given, 1, 'a tenth of 3 ms, and what was left, is enough for three');
  nowMs += 1_000;
  await Promise.all(Array.from({ length: 7 }, verify));
  assert.equal(state.given, 2, 'no more than a millisecond is left over');
});

test('what is wrong is told as by the threads; large bodies are theirs, and all once it is closed', async () => {
  const { state, threads } = createThreads();
  // What takes no time leaves its share.
  const verifier = verifyNear(threads, () => 0);
  await assert.rejects(verifier.verify(Buffer.from('{'), NOW), { code: 'INVALID_JSON' });
  assert.equal(state.given, 0);
  await verifier.verify(bodyOf('x'.repeat(20_000)), NOW);
  assert.equal(state.given, 1);
  await verifier[Symbol.asyncDispose]();
  await verifier.verify(bodyOf('late'), NOW);
  assert.deepEqual([state.given, state.isClosed], [2, true]);
});
