import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createSigner, type MessageDraft, type Signer, signMessage } from '@skerry/client';
import { verifySubmission } from '@skerry/protocol';
import { digestState } from '../state/digest.ts';
import { clearMessages } from '../testing/clear.ts';
import { createTestCore, signers, type TestCore } from '../testing/core.ts';
import { acceptMessage } from './accept.ts';

const { alice, bob } = signers;
const carol = createSigner(`0x${'ca'.repeat(32)}`);
const T0 = 1_700_000_000;

interface Sent {
  readonly body: string;
  readonly itemHash: string;
}

const signed = (signer: Signer, type: string, content: unknown, at: number): Sent =>
  signMessage({ type, content, timestamp: T0 + at, nonce: `${at}` } as MessageDraft, signer);
const note = (by: Signer) => signed(by, 'POST', { type: 'note', content: 'x' }, 1);
const grant = (by: Signer, to: Signer) =>
  signed(by, 'AGGREGATE', { key: 'security', content: { authorizations: [{ address: to.address }] } }, 2);
const forget = (by: Signer, targets: readonly Sent[], at: number, more: object = {}) =>
  signed(by, 'FORGET', { hashes: targets.map(({ itemHash }) => itemHash), ...more }, at);

/** Each permits the one before it, and takes that away again together with a message of the one after it. */
function circleOf(all: readonly Signer[]) {
  const next = (at: number) => (at + 1) % all.length;
  const notes = all.map(note);
  const grants = all.map((by, at) => grant(by, all[(at + all.length - 1) % all.length]!));
  const forgets = all.map((by, at) => forget(by, [grants[at]!, notes[next(at)]!], 1_000 + at));
  return { before: [...notes, ...grants], forgets };
}

describe('a FORGET that takes permissions away', () => {
  let core: TestCore;
  before(async () => {
    core = await createTestCore();
  });
  after(() => core[Symbol.asyncDispose]());

  async function take(messages: readonly Sent[]) {
    for (const { body } of messages) {
      const accepted = acceptMessage(verifySubmission(body, Math.floor(Date.now() / 1000)));
      await core.rooms.intake.peer.keep([{ accepted }]);
    }
    await core.rooms.pipeline.idle();
    const { cursor: _, ...digest } = await digestState(core.rooms.db);
    return digest;
  }
  const statusOf = async ({ itemHash }: Sent) =>
    (await core.get(`/messages/${itemHash}/status`)).body.status as string;

  test('two that each take away what the other one needs end alike on every node, whichever came first', async () => {
    const { before: world, forgets } = circleOf([alice, bob]);
    const first = await take([...world, ...forgets]);
    await clearMessages(core);
    const second = await take([...world, ...forgets.toReversed()]);
    assert.deepEqual(second, first);
    for (const one of forgets) assert.equal(await statusOf(one), 'rejected');
    for (const one of world) assert.equal(await statusOf(one), 'processed');
  });

  test('three of which each takes away what the next one needs are settled', {
    timeout: 60_000,
  }, async () => {
    await clearMessages(core);
    const { before: world, forgets } = circleOf([alice, bob, carol]);
    await take([...world, ...forgets]);
    for (const one of forgets) assert.equal(await statusOf(one), 'rejected');
  });

  test('in the name of somebody else neither; with messages of its own signer alone it holds', async () => {
    await clearMessages(core);
    const own = note(alice);
    const [ofAlice, ofBob] = [grant(alice, bob), grant(bob, alice)];
    const inHisName = forget(alice, [ofAlice], 5, { address: bob.address });
    const alone = forget(alice, [ofAlice, own], 6);
    await take([own, ofAlice, ofBob, inHisName]);
    assert.equal(await statusOf(inHisName), 'rejected');
    assert.equal(await statusOf(ofAlice), 'processed');
    await take([alone]);
    assert.equal(await statusOf(alone), 'processed');
    assert.deepEqual([await statusOf(ofAlice), await statusOf(own)], ['forgotten', 'forgotten']);
  });
});
