import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { buildNetworkMessage, signMessage } from '@skerry/client';
import { createLogger } from '@skerry/kit';
import { AppError, type VerifiedMessage } from '@skerry/protocol';
import { signers } from '../../testing/core.ts';
import { addonForTests } from './batch/testing/built.ts';
import { VerifierPool } from './pool.ts';
import {
  inlineVerifier,
  packResult,
  readVerified,
  unpackResult,
  type Verifier,
  type VerifyResult,
} from './verifier.ts';

const log = createLogger('test', 'silent');
const NOW = Math.floor(Date.now() / 1000);
const note = { type: 'POST', content: { type: 'note', content: 'é' } };
const bytes = (text: string) => Buffer.from(text);

async function answerOf(verifier: Verifier, body: Uint8Array): Promise<unknown> {
  try {
    return await verifier.verify(body, NOW);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return [error.code, error.message, error.details];
  }
}

describe('the pool of verifying threads', () => {
  test('answers as the same thread would, good and bad, each to its own caller', async () => {
    await using pool = new VerifierPool({ workers: 2, log });
    const { body } = signMessage(note, signers.alice);
    const network = buildNetworkMessage(note, signers.alice).body;
    const bodies = [
      body,
      body.replace('note', 'NOTE'),
      network,
      network.replace('note', 'NOTE'),
      // Written otherwise than a client of ours does: it comes back whole, not as a proof of its text.
      `{ "message" : ${body.slice('{"message":'.length)}`,
      ...['', '{', '[]', '{}', '{"message":{}}', '{"message":{"item_hash":1}}', `{"a":${'['.repeat(100)}`],
    ].map(bytes);
    const expected = await Promise.all(bodies.map((one) => answerOf(inlineVerifier, one)));
    // More than go out in one message, so that every thread has several.
    const rounds = Array.from({ length: 30 }, () => bodies).flat();
    const got = await Promise.all(rounds.map((one) => answerOf(pool, one)));
    for (const [index, one] of got.entries()) assert.deepEqual(one, expected[index % bodies.length]);
    assert.ok(!Array.isArray(expected[0]) && Array.isArray(expected[1]));
  });

  test('messages of another node are verified together, with the same results as one by one', async () => {
    await using pool = new VerifierPool({ workers: 2, log });
    const { body } = signMessage(note, signers.alice);
    const spaced = `{ "message" : ${body.slice('{"message":'.length)}`;
    const network = JSON.stringify({
      ...JSON.parse(buildNetworkMessage(note, signers.alice).body),
      noted_ms: 7,
    });
    const frames = [body, spaced, network, body.replace('note', 'NOTE'), '{', '{}', '[]'].map(bytes);
    const many = Array.from({ length: 50 }, () => frames).flat();
    const results = await pool.verifyAll(many, NOW);
    const answer = async (read: () => unknown) => {
      try {
        return await read();
      } catch (error) {
        return [(error as AppError).code, (error as AppError).message];
      }
    };
    for (const [at, frame] of many.entries())
      assert.deepEqual(
        await answer(() => readVerified(results[at]!, frame)),
        await answer(() => inlineVerifier.verifyShared(frame, NOW)),
      );
    assert.deepEqual(await pool.verifyAll([], NOW), []);
  });

  test('with batches the answers are the same, and a thread that is replaced has them, too', async () => {
    let prepared = 0;
    await using pool = new VerifierPool({
      workers: 1,
      log,
      prepareBatches: async () => {
        prepared++;
        return { path: await addonForTests() };
      },
    });
    const { body } = signMessage(note, signers.alice);
    const bodies = [body, body.replace('note', 'NOTE'), '{}', body].map(bytes);
    const expected = await Promise.all(bodies.map((one) => answerOf(inlineVerifier, one)));
    const compareAll = async () => {
      const rounds = Array.from({ length: 300 }, () => bodies).flat();
      const got = await Promise.all(rounds.map((one) => answerOf(pool, one)));
      for (const [index, one] of got.entries()) assert.deepEqual(one, expected[index % bodies.length]);
    };
    await compareAll();
    assert.equal(prepared, 1);
    await compareAll();
    const exited = once(pool.workers[0]!, 'exit');
    await pool.workers[0]!.terminate();
    await exited;
    await compareAll();
    assert.equal(prepared, 1);
  });

  test('a thread has the next frames before it is done with the first ones, and a client waits for no more', async () => {
    await using pool = new VerifierPool({ workers: 1, log });
    const { body } = signMessage(note, signers.alice);
    const [worker] = pool.workers;
    const given: number[] = [];
    const post = worker!.postMessage.bind(worker) as (...args: unknown[]) => void;
    const noted = (task: { lengths?: readonly number[] }, ...rest: unknown[]) => {
      if (task.lengths) given.push(task.lengths.length);
      post(task, ...rest);
    };
    Object.assign(worker!, { postMessage: noted });
    const frames = pool.verifyAll(
      Array.from({ length: 1_400 }, () => bytes(body)),
      NOW,
    );
    assert.deepEqual(given, [512, 512]);
    await pool.verify(bytes(body), NOW);
    await frames;
    assert.deepEqual(given, [512, 512, 1, 376]);
  });

  test('where batches cannot be had, all is as before', async () => {
    await using pool = new VerifierPool({
      workers: 1,
      log,
      prepareBatches: () => Promise.reject(new Error('no room')),
    });
    const { body } = signMessage(note, signers.alice);
    const all = await Promise.all(
      Array.from({ length: 1_200 }, () => pool.verify(bytes(body), NOW, 'alice')),
    );
    assert.equal(all.length, 1_200);
    assert.equal((await pool.verify(bytes(body), NOW)).form, 'envelope');
  });

  test('a thread that dies is replaced; who had its answer to come is told, and the next ones are served', async () => {
    await using pool = new VerifierPool({ workers: 1, log });
    const { body } = signMessage(note, signers.alice);
    await pool.verify(bytes(body), NOW);
    for (const way of ['is ended', 'fails']) {
      const worker = pool.workers[0]!;
      const post = worker.postMessage.bind(worker);
      // What it is given is lost on the way: it dies before it has answered, however fast it is.
      Object.assign(worker, { postMessage: () => {} });
      const told = assert.rejects(pool.verify(bytes(body), NOW), {
        code: 'INTERNAL',
        message: 'the verification failed',
      });
      const waiting = pool.verify(bytes(body), NOW);
      const gone = new Promise((resolve) => worker.once('exit', resolve));
      if (way === 'fails') post({ bodies: 7 });
      else void worker.terminate();
      await told;
      assert.equal((await waiting).form, 'envelope', 'who waited has the next thread');
      assert.equal((await pool.verify(bytes(body), NOW)).form, 'envelope');
      assert.notEqual(pool.workers[0], worker);
      await gone;
    }
  });

  test('beyond its limit it refuses, and what it took it still answers', async () => {
    await using pool = new VerifierPool({ workers: 1, log, maxWaiting: 3 });
    const { body } = signMessage(note, signers.alice);
    const all = await Promise.allSettled(Array.from({ length: 10 }, () => pool.verify(bytes(body), NOW)));
    const refused = all.filter((one) => one.status === 'rejected');
    assert.equal(refused.length, 6, 'one is under way, three wait');
    assert.ok(refused.every(({ reason }) => reason.code === 'OVERLOADED'));
  });

  test('disposal ends the threads and tells everybody who waits', async () => {
    const pool = new VerifierPool({ workers: 1, log });
    const { body } = signMessage(note, signers.alice);
    const waiting = Promise.allSettled(Array.from({ length: 200 }, () => pool.verify(bytes(body), NOW)));
    await pool[Symbol.asyncDispose]();
    const codes = (await waiting).map((one) => (one.status === 'rejected' ? one.reason.code : 'answered'));
    assert.ok(codes.every((code) => code === 'SHUTTING_DOWN' || code === 'answered'));
    assert.equal(codes.at(-1), 'SHUTTING_DOWN');
    await assert.rejects(pool.verify(bytes(body), NOW), { code: 'SHUTTING_DOWN' });
  });
});

test('results come out of another thread as they went in, whatever each of them is', () => {
  const proof = (n: number, notedMs?: number) => ({
    proof: {
      itemHash: `hash ${n}`,
      sender: `sender ${n}`,
      signature: `signature ${n}`,
      signedChars: n,
      notedMs,
    },
  });
  const refused = { code: 'INVALID_SIGNATURE', error: 'no', details: { n: 1 } };
  const message = { message: { form: 'upload' } as unknown as VerifiedMessage };
  for (const results of [
    [],
    [proof(1), proof(2, 5)],
    [refused, proof(1), message, proof(2)],
    [message, refused],
  ] satisfies VerifyResult[][]) {
    const given = { results, wrong: [1] };
    assert.deepEqual(unpackResult(structuredClone(packResult(given))), given);
  }
});
