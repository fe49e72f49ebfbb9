import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type MessageDraft, signMessage } from '@skerry/client';
import { createLogger } from '@skerry/kit';
import { verifySubmission } from '@skerry/protocol';
import { createTestCore, signers } from '../../testing/core.ts';
import { acceptMessage } from '../accept.ts';
import type { Accepted } from '../accepted.ts';
import { VerifierPool } from '../verify/pool.ts';
import { Queue, type Waiting } from './queue.ts';
import { putInLine, readLine } from './reconsider-queue.ts';

const { alice } = signers;
const MIB = 1024 * 1024;
const T0 = 1_700_000_000;

const post = (bytes: number, n = 0): Accepted => {
  const draft = { type: 'POST', content: { type: 'note', content: 'x'.repeat(bytes) }, timestamp: T0 };
  const { body } = signMessage({ ...draft, nonce: `${n}` } as MessageDraft, alice);
  return acceptMessage(verifySubmission(Buffer.from(body), T0));
};
const waiting = (accepted: Accepted): Waiting => ({
  ...{ accepted, isPassedOn: false, weight: 'counts' },
  ...{ resolve: () => {}, reject: () => {} },
});

describe('large messages', () => {
  test('bodies that wait to be verified are bounded by what they hold', async () => {
    await using pool = new VerifierPool({ workers: 0, log: createLogger('test', 'silent') });
    const large = Buffer.alloc(MIB, ' ');
    const held = Array.from({ length: 64 }, () => pool.verify(large, T0).catch(() => {}));
    await assert.rejects(pool.verify(large, T0), { code: 'OVERLOADED' });
    void held;
  });

  test('what waits to be written goes into batches of so much, and what can be sent again waits elsewhere', () => {
    const queue = new Queue();
    const half = post(MIB / 2);
    for (let n = 0; n < 32; n++) {
      queue.checkRoom();
      queue.push(waiting(half));
    }
    assert.throws(() => queue.checkRoom(), { code: 'OVERLOADED' });
    // What other nodes pass on is there already.
    queue.push(waiting(post(10, 1)));
    const sizes: number[] = [];
    while (queue.length > 0) sizes.push(queue.takeBatch().length);
    assert.deepEqual(sizes, [15, 15, 3]);
    queue.checkRoom();
    queue.push(waiting(post(9 * MIB, 2)));
    assert.equal(queue.takeBatch().length, 1, 'one that is larger goes alone');
  });

  test('messages are decided again a few large ones at a time', async () => {
    await using core = await createTestCore();
    const { db, pipeline } = core.rooms;
    const large = Array.from({ length: 20 }, (_, n) => post(MIB - 2_000, n));
    for (const one of large) await pipeline.submit(one);
    const hashes = large.map(({ message }) => message.itemHash).toSorted();
    await putInLine(db, [], hashes);
    const first = await readLine(db, 2_000, []);
    assert.deepEqual(first.hashes, hashes.slice(0, 8));
    assert.equal(first.messages.length, 8);
    const others = await readLine(db, 2_000, hashes.slice(0, 19));
    assert.deepEqual(others.hashes, hashes.slice(19));
    pipeline.resume();
    await pipeline.idle();
    assert.deepEqual((await readLine(db, 2_000, [])).hashes, []);
  });
});
