import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { buildNetworkMessage, type Signer, signMessage } from '@skerry/client';
import { sha256Hex, verifySubmission } from '@skerry/protocol';
import { digestState } from '../state/digest.ts';
import { clearMessages } from '../testing/clear.ts';
import { createTestCore, signers, type TestCore } from '../testing/core.ts';
import { acceptMessage } from './accept.ts';
import { ERASE_AFTER_MS, eraseForgotten } from './erase.ts';

const { alice, bob, node } = signers;
const T0 = 1_700_000_000;

/** All orders of a few. */
const ordersOf = <One>(all: readonly One[]): One[][] =>
  all.length === 0
    ? [[]]
    : all.flatMap((one, at) => ordersOf(all.toSpliced(at, 1)).map((others) => [one, ...others]));

describe('copies of one message by two senders that both hold', () => {
  let core: TestCore;
  before(async () => {
    core = await createTestCore();
  });
  after(() => core[Symbol.asyncDispose]());

  /** As a peer passes it on that had it so long after its time. */
  function copyBy(signer: Signer, content: object, afterMs: number) {
    const draft = { type: 'POST', content: { address: alice.address, time: T0, ...content } };
    const { body, itemHash } = buildNetworkMessage({ ...draft, channel: 'copies', time: T0 }, signer);
    const { message } = JSON.parse(body);
    return { itemHash, frame: Buffer.from(JSON.stringify({ message, noted_ms: T0 * 1000 + afterMs })) };
  }
  async function take(frames: readonly Buffer[]) {
    const { peer } = core.rooms.intake;
    for (const frame of frames) await peer.keep(await peer.read([frame]));
    await core.rooms.pipeline.idle();
  }
  async function grant() {
    const content = { authorizations: [{ address: bob.address }, { address: node.address }] };
    const draft = { type: 'AGGREGATE', content: { key: 'security', content } };
    const { body } = signMessage({ ...draft, timestamp: T0 - 5_000, nonce: '1' }, alice);
    const accepted = acceptMessage(verifySubmission(body, T0));
    await core.rooms.intake.peer.keep([{ accepted }]);
  }
  async function look(itemHash: string) {
    const row = await core.rooms.db
      .selectFrom('messages')
      .select(['sender', 'owner', 'status'])
      .where('item_hash', '=', itemHash)
      .executeTakeFirst();
    const { cursor: _, ...digest } = await digestState(core.rooms.db);
    const { body } = await core.get(`/messages.json?addresses=${bob.address}`);
    return { row, digest, ofBob: body.messages.length };
  }

  test('every node ends with the one that was there first, in whatever order it heard of them', async () => {
    const content = { type: 'note', content: 'one text' };
    const [first, second] = [copyBy(bob, content, 1_000), copyBy(node, content, 2_000)];
    const looks = [];
    for (const frames of [
      [first.frame, second.frame],
      [second.frame, first.frame],
      [second.frame, first.frame, second.frame],
    ]) {
      await clearMessages(core);
      await grant();
      await take(frames);
      looks.push(await look(first.itemHash));
    }
    assert.deepEqual(looks[0]!.row, { sender: bob.address, owner: alice.address, status: 'processed' });
    assert.equal(looks[0]!.ofBob, 1);
    assert.deepEqual(looks[1], looks[0]);
    assert.deepEqual(looks[2], looks[0]);
  });

  describe('of a content file that names no owner, each the property of its sender', () => {
    const content = Buffer.from(JSON.stringify({ type: 'note', content: 'whose', time: T0 }));
    const hash = sha256Hex(content);
    const ownCopy = (signer: Signer, afterMs: number) => {
      const message = {
        ...{ chain: 'ETH', sender: signer.address, type: 'POST', channel: 'copies', time: T0 },
        ...{ item_type: 'storage', item_hash: hash },
        signature: signer.sign(`ETH\n${signer.address}\nPOST\n${hash}`),
      };
      return Buffer.from(JSON.stringify({ message, noted_ms: T0 * 1000 + afterMs }));
    };
    const forget = (signer: Signer, hashes = [hash]) =>
      Buffer.from(signMessage({ type: 'FORGET', content: { hashes }, timestamp: T0 + 5 }, signer).body);
    const statusOf = async (itemHash: string) =>
      (await core.get(`/messages/${itemHash}/status`)).body.status as string;
    const erase = () => eraseForgotten(core.rooms.db, Date.now() + ERASE_AFTER_MS);
    const [first, second] = [ownCopy(alice, 1_000), ownCopy(bob, 2_000)];

    /** Where all orders of frames end, each frame decided with all that hangs on it before the next one comes. */
    async function endsOf(frames: readonly Buffer[], after = async (): Promise<unknown> => undefined) {
      const ends = [];
      for (const order of ordersOf(frames)) {
        await clearMessages(core);
        for (const frame of order) {
          await take([frame]);
          await after();
        }
        ends.push(await look(hash));
      }
      return ends;
    }

    before(() => core.post('/storage/add_file', content, { 'content-type': 'application/octet-stream' }));

    for (const [name, after] of [
      ['kept', undefined],
      ['erased at once', erase],
    ] as const)
      test(`a FORGET of a later copy forgets none of the earlier one, in any order; what is forgotten is ${name}`, async () => {
        const ends = await endsOf([first, second, forget(bob)], after);
        assert.deepEqual(ends[0]!.row, { sender: alice.address, owner: alice.address, status: 'processed' });
        for (const end of ends) assert.deepEqual(end, ends[0]);
      });

    test('each forgets its own: the earlier one is forgotten by its sender alone, in any order', async () => {
      const [own, other] = [forget(alice), forget(bob)];
      const ends = await endsOf([first, second, own, other]);
      assert.deepEqual(ends[0]!.row, { sender: alice.address, owner: alice.address, status: 'forgotten' });
      for (const end of ends) assert.deepEqual(end, ends[0]);
      const [ownHash, otherHash] = [own, other].map((frame) => verifySubmission(frame, T0 + 5).itemHash);
      assert.deepEqual([await statusOf(ownHash!), await statusOf(otherHash!)], ['processed', 'rejected']);
    });
  });

  test('one that does not hold takes the place of none, however early it says it was', async () => {
    await clearMessages(core);
    const content = { type: 'note', content: 'another text' };
    const own = copyBy(alice, content, 2_000);
    await take([own.frame, copyBy(bob, content, 1_000).frame]);
    assert.equal((await look(own.itemHash)).row!.sender, alice.address);
  });
});
