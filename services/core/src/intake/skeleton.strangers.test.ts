import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { signMessage } from '@skerry/client';
import { digestState } from '../state/digest.ts';
import { createTestCore, signers, type TestCore } from '../testing/core.ts';
import { erasedText } from './erased.ts';

const { alice, bob } = signers;

describe('what a peer says of a forgotten message', () => {
  let core: TestCore;
  before(async () => {
    core = await createTestCore();
  });
  after(() => core[Symbol.asyncDispose]());

  /** The skeleton of a message that is in force here. */
  async function skeletonOf(itemHash: string, changed: object = {}): Promise<Buffer> {
    const row = await core.rooms.db
      .selectFrom('messages')
      .selectAll()
      .where('item_hash', '=', itemHash)
      .executeTakeFirstOrThrow();
    const { forgotten } = JSON.parse(erasedText(row));
    return Buffer.from(JSON.stringify({ forgotten: { ...forgotten, ...changed } }));
  }
  const look = async () => (({ cursor: _, ...digest }) => digest)(await digestState(core.rooms.db));

  test('takes nothing away that its sender signed and this node has', async () => {
    const { peer } = core.rooms.intake;
    const content = { key: 'profile', content: { name: 'Alice' } };
    const { body } = await core.send(alice, { type: 'AGGREGATE', content });
    const before = await look();
    const { sender, owner } = { sender: bob.address, owner: bob.address };
    for (const changed of [{}, { noted_ms: 1 }, { sender, owner }, { time: 5 }]) {
      const read = await peer.read([await skeletonOf(body.item_hash, changed)]);
      await peer.keep(read);
      await peer.keep(read, () => true);
      await core.rooms.pipeline.idle();
      assert.deepEqual(await look(), before, JSON.stringify(changed));
    }
    const { body: kept } = await core.get(`/messages/${body.item_hash}`);
    assert.deepEqual([kept.status, kept.content], ['processed', content]);
    const { body: profile } = await core.get(`/aggregates/${alice.address}/profile`);
    assert.deepEqual(profile.content, { name: 'Alice' });
  });

  test('stands in the way of none that its sender signed, whoever it says that was', async () => {
    const { peer } = core.rooms.intake;
    const { body, itemHash } = signMessage({ type: 'POST', content: { type: 'note', content: 'b' } }, alice);
    const { body: other } = await core.send(alice, { type: 'POST', content: { type: 'note', content: 'c' } });
    const { sender, owner } = { sender: bob.address, owner: bob.address };
    const frame = await skeletonOf(other.item_hash, { item_hash: itemHash, sender, owner });
    await peer.keep(await peer.read([frame]));
    const statusOf = async () => (await core.get(`/messages/${itemHash}/status`)).body.status;
    assert.equal(await statusOf(), 'forgotten');
    assert.equal((await core.post('/messages', body)).status, 200);
    assert.equal(await statusOf(), 'processed');
    await peer.keep(await peer.read([frame]));
    const { body: kept } = await core.get(`/messages/${itemHash}`);
    assert.deepEqual([kept.status, kept.sender], ['processed', alice.address]);
  });

  test('is believed of nobody but configured peers', async () => {
    const { body } = await core.send(alice, { type: 'POST', content: { type: 'note', content: 'a' } });
    const frame = await skeletonOf(body.item_hash);
    for (const source of ['gossip', 'offer'] as const)
      assert.deepEqual(await core.rooms.intake[source].read([frame]), [{ fault: 'refused' }], source);
  });
});
