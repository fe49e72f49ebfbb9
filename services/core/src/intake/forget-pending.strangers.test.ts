import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { type MessageDraft, type Signer, signMessage } from '@skerry/client';
import { sha256Hex } from '@skerry/protocol';
import fc from 'fast-check';
import { digestState } from '../state/digest.ts';
import { TestDaemon } from '../store/ipfs/testing/daemon.ts';
import { clearMessages } from '../testing/clear.ts';
import { createTestCore, signers, type TestCore } from '../testing/core.ts';

const { alice, bob } = signers;
const T0 = 1_700_000_000;
const MISSING = sha256Hex('a file that nobody has');
const UNKNOWN_CID = 'QmT78zSuBmuS4z925WZfrqQ1qHaJ56DQaTfyMUF7F8ff5o';

interface Sent {
  readonly body: string;
  readonly itemHash: string;
}

const signed = (signer: Signer, type: string, content: unknown, at: number): Sent =>
  signMessage({ type, content, timestamp: T0 + at, nonce: `${at}` } as MessageDraft, signer);
const storeOf = (hash: string, at: number, signer = alice, more: object = {}) =>
  signed(signer, 'STORE', { item_type: 'storage', item_hash: hash, ...more }, at);
const forget = (signer: Signer, at: number, ...targets: Sent[]) =>
  signed(signer, 'FORGET', { hashes: targets.map(({ itemHash }) => itemHash) }, at);

const put = (core: TestCore, one: Sent) => core.post('/messages', one.body);
async function statusOf(core: TestCore, { itemHash }: Sent) {
  await core.rooms.pipeline.idle();
  const { body } = await core.get(`/messages/${itemHash}/status`);
  return [body.status, body.reason?.code ?? null];
}

async function keep(core: TestCore, text: string): Promise<void> {
  const blob = await core.blobs.receive(Readable.from([Buffer.from(text)]), 10_000);
  await core.rooms.files.storeUnpinned(blob, 'text/plain');
  await blob.discard();
}

describe('FORGET of what is pending', () => {
  test('F9: the owner stops a STORE that waits for its file: nobody looks for it any more', async () => {
    await using daemon = await TestDaemon.start();
    await using core = await createTestCore({ ipfs: { gateways: [daemon.url] } });
    // A try that goes on for long is ended, too.
    daemon.illness = 'slow';
    const store = signed(alice, 'STORE', { item_type: 'ipfs', item_hash: UNKNOWN_CID }, 1);
    assert.equal((await put(core, store)).status, 202);
    const strangers = await put(core, forget(bob, 5, store));
    assert.deepEqual([strangers.status, strangers.body.code], [403, 'NOT_PERMITTED']);
    const own = forget(alice, 5, store);
    assert.equal((await put(core, own)).status, 200);
    assert.deepEqual(await statusOf(core, store), ['forgotten', 'MESSAGE_FORGOTTEN']);
    const wanted = await core.rooms.db.selectFrom('wanted_files').select('hash').execute();
    assert.deepEqual(wanted, []);
    // What comes too late for it changes nothing.
    daemon.illness = undefined;
    const again = await put(core, store);
    assert.deepEqual([again.status, again.body.code], [410, 'MESSAGE_FORGOTTEN']);
  });

  test('F9: another message that waits for the same file goes on waiting', async () => {
    await using core = await createTestCore();
    const [one, other] = [1, 2].map((at) =>
      signed(alice, 'STORE', { item_type: 'ipfs', item_hash: UNKNOWN_CID }, at),
    ) as [Sent, Sent];
    await put(core, one);
    await put(core, other);
    await put(core, forget(alice, 5, one));
    assert.deepEqual(await statusOf(core, other), ['pending', 'FILE_NOT_FOUND']);
    const wanted = await core.rooms.db.selectFrom('wanted_files').select('hash').execute();
    assert.deepEqual(wanted, [{ hash: UNKNOWN_CID }]);
  });

  test('F9: a target whose content is not here has no known owner: the FORGET waits and says so', async () => {
    await using core = await createTestCore();
    const content = JSON.stringify({ address: alice.address, time: T0, type: 'file', content: 1 });
    const itemHash = sha256Hex(content);
    const signature = alice.sign(`ETH\n${alice.address}\nPOST\n${itemHash}`);
    const fields = { chain: 'ETH', sender: alice.address, type: 'POST', time: T0, item_type: 'storage' };
    const body = JSON.stringify({ message: { ...fields, item_hash: itemHash, signature } });
    const target = { body, itemHash };
    assert.equal((await put(core, target)).status, 202);
    const early = forget(alice, 5, target);
    const answer = await put(core, early);
    assert.deepEqual([answer.status, answer.body.reason.code], [202, 'CONTENT_NOT_FOUND']);
    assert.match(answer.body.reason.message, new RegExp(itemHash));
    await keep(core, content);
    assert.deepEqual(await statusOf(core, early), ['processed', null]);
    assert.deepEqual(await statusOf(core, target), ['forgotten', 'MESSAGE_FORGOTTEN']);
  });
});

describe('FORGET of what is pending, in any order', () => {
  const text = 'a file that comes late or never';
  const file = sha256Hex(text);
  const post = signed(alice, 'POST', { type: 'note', content: 1 }, 10);
  const amend = signed(alice, 'POST', { type: 'amend', ref: post.itemHash, content: 2 }, 11);
  const orphan = signed(alice, 'POST', { type: 'amend', ref: MISSING, content: 3 }, 12);
  const stored = storeOf(file, 13);
  const kept = storeOf(file, 14);
  const never = storeOf(MISSING, 15);
  const delegated = storeOf(MISSING, -585, bob, { address: alice.address });
  const world = [
    post,
    amend,
    orphan,
    stored,
    kept,
    never,
    delegated,
    signed(
      alice,
      'AGGREGATE',
      { key: 'security', content: { authorizations: [{ address: bob.address }] } },
      -590,
    ),
    signed(alice, 'AGGREGATE', { key: 'security', content: { authorizations: [] } }, 45),
    forget(alice, 20, orphan, stored),
    forget(alice, 50, never),
    // Earlier than the revocation reaches back.
    forget(bob, -580, amend),
    // Not permitted any more, so all or nothing of it is nothing.
    forget(bob, 47, kept, delegated),
  ];
  const settledOf = async (core: TestCore) => {
    await core.rooms.pipeline.idle();
    const { cursor: _cursor, ...digest } = await digestState(core.rooms.db);
    const statuses = [];
    for (const one of world) statuses.push((await statusOf(core, one))[0]);
    return { digest, statuses };
  };
  let core: TestCore;
  before(async () => {
    // Nothing of the world comes late.
    core = await createTestCore({ now: () => T0 * 1000 });
  });
  after(() => core[Symbol.asyncDispose]());

  test('F9: the statuses are a function of the messages and of the files that are here', async () => {
    const expected = new Map<boolean, Awaited<ReturnType<typeof settledOf>>>();
    await fc.assert(
      fc.asyncProperty(
        fc.shuffledSubarray(world, { minLength: world.length }),
        fc.option(fc.nat(world.length)),
        async (order, fileAt) => {
          await clearMessages(core, ['files', 'wanted_files']);
          for (const [at, one] of order.entries()) {
            if (at === fileAt) await keep(core, text);
            await put(core, one);
          }
          if (fileAt === world.length) await keep(core, text);
          const seen = await settledOf(core);
          const isHere = fileAt !== null;
          if (!expected.has(isHere)) {
            expected.set(isHere, seen);
            assert.deepEqual(seen.statuses, [
              ...['processed', 'forgotten', 'forgotten', 'forgotten', isHere ? 'processed' : 'pending'],
              ...['forgotten', 'pending', 'processed', 'processed'],
              ...['processed', 'processed', 'processed', 'rejected'],
            ]);
          }
          assert.deepEqual(seen, expected.get(isHere));
        },
      ),
      { numRuns: 25 },
    );
  });
});
