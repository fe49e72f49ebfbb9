import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { buildNetworkMessage, buildStoredMessage, signMessage } from '@skerry/client';
import { sha256Hex } from '@skerry/protocol';
import { digestState } from '../state/digest.ts';
import { MissedFiles } from '../store/files/missed.ts';
import { listUnlacked } from '../store/files/wanted.ts';
import { createTestCore, signers, type TestCore } from '../testing/core.ts';
import { acceptMessage } from './accept.ts';
import { ERASE_AFTER_MS, eraseForgotten } from './erase.ts';
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

  test('gives way to what its sender signed, also where that tells of an earlier date and another channel', async () => {
    const { peer } = core.rooms.intake;
    const nowMs = Date.now();
    const { body: other } = await core.send(alice, { type: 'POST', content: { type: 'note', content: 'c' } });
    for (const [at, changed] of [{}, { channel: 'lied' }].entries()) {
      const content = { type: 'note', content: `signed ${at}` };
      const draft = { type: 'POST', channel: 'notes', content, time: Math.floor(nowMs / 1_000) - 3_600 };
      const { body, itemHash } = buildNetworkMessage(draft, alice);
      const { message } = JSON.parse(body);
      const said = { item_hash: itemHash, time: message.time, channel: 'notes', noted_ms: nowMs, ...changed };
      await peer.keep(await peer.read([await skeletonOf(other.item_hash, said)]));
      const signed = JSON.stringify({ message, noted_ms: nowMs - 1_800_000 });
      await peer.keep(await peer.read([Buffer.from(signed)]));
      const { body: kept } = await core.get(`/messages/${itemHash}`);
      assert.deepEqual(
        [kept.status, kept.channel, kept.content?.content],
        ['processed', 'notes', content.content],
      );
    }
  });

  test('leaves a message whose file is not here what its sender signed, and that is in force once the file comes', async () => {
    const { peer } = core.rooms.intake;
    const { body: other } = await core.send(alice, { type: 'POST', content: { type: 'note', content: 'c' } });
    for (const changed of [
      { signature: 'lied' },
      { noted_ms: 1, signature: 'lied' },
      { sender: bob.address, owner: bob.address },
      { type: 'STORE', chain: 'SOL' },
    ]) {
      const draft = { type: 'POST', content: { type: 'note', content: JSON.stringify(changed) } };
      const { body, itemHash, content } = buildStoredMessage(draft, alice);
      const { message } = JSON.parse(body);
      assert.equal((await core.post('/messages', body)).status, 202);
      const said = { ...message, item_hash: itemHash, form: 'network', noted_ms: Date.now(), ...changed };
      const { item_type: _, ...skeleton } = said;
      await peer.keep(await peer.read([await skeletonOf(other.item_hash, skeleton)]));
      const headers = { 'content-type': 'application/octet-stream' };
      await core.post('/storage/add_file', Buffer.from(content), headers);
      await core.rooms.pipeline.idle();
      const { body: kept } = await core.get(`/messages/${itemHash}`);
      const { status, sender, signature, type } = kept;
      assert.deepEqual(
        [status, sender, signature, type, kept.content?.content],
        ['processed', alice.address, message.signature, 'POST', draft.content.content],
        JSON.stringify(changed),
      );
    }
  });

  test('has what may be its content looked for, and is no message where nobody signed it', async () => {
    const { db, intake, pipeline, now } = core.rooms;
    const { body: other } = await core.send(alice, { type: 'POST', content: { type: 'note', content: 'c' } });
    const { body, itemHash, content } = buildStoredMessage(
      { type: 'POST', content: { type: 'note', content: 'made up' } },
      alice,
    );
    const cid = `Qm${'a'.repeat(44)}`;
    const { item_type: _, ...said } = { ...JSON.parse(body).message, form: 'network', noted_ms: Date.now() };
    const signature = alice.sign(`ETH\n${alice.address}\nPOST\n${cid}`);
    for (const changed of [{}, { item_hash: cid, signature }]) {
      const frame = await skeletonOf(other.item_hash, { ...said, ...changed });
      await intake.peer.keep(await intake.peer.read([frame]));
    }
    // Kept by an earlier release, which did not check it.
    const lied = { signature: alice.sign('another') };
    await db.updateTable('messages').set(lied).where('item_hash', '=', itemHash).execute();
    for (const [namedBy, name] of [
      ['hash', itemHash],
      ['cid', cid],
    ] as const) {
      const missed = new MissedFiles({ db, namedBy, now });
      await missed.round();
      assert.deepEqual(missed.names, [name]);
      assert.deepEqual(await listUnlacked(db, [name]), []);
    }
    const headers = { 'content-type': 'application/octet-stream' };
    await core.post('/storage/add_file', Buffer.from(content), headers);
    await pipeline.idle();
    assert.equal((await core.get(`/messages/${itemHash}/status`)).body.status, 'forgotten');
    assert.equal((await core.post('/messages', body)).status, 200);
  });

  test('takes the place of a copy by another sender, whose file is not here, only where that one signed it', async () => {
    const { peer } = core.rooms.intake;
    const { body: other } = await core.send(alice, { type: 'POST', content: { type: 'note', content: 'c' } });
    const content = { type: 'note', content: 'copied', address: alice.address };
    const [copy, signed] = [bob, alice].map((signer) =>
      buildStoredMessage({ type: 'POST', content, time: 1_700_000_000 }, signer),
    );
    assert.equal((await core.post('/messages', copy!.body)).status, 202);
    const { message } = JSON.parse(signed!.body);
    const { item_type: _, ...said } = { ...message, form: 'network' };
    const senderOf = async () => (await core.get(`/messages/${signed!.itemHash}`)).body.sender;
    for (const [signature, sender] of [
      [JSON.parse(copy!.body).message.signature, bob.address],
      [message.signature, alice.address],
    ]) {
      const frame = await skeletonOf(other.item_hash, { ...said, signature });
      await peer.keep(await peer.read([frame]));
      assert.equal(await senderOf(), sender);
    }
  });

  for (const isErased of [false, true])
    test(`settles when a forgotten upload came and what it is called, whichever was heard first${isErased ? ', also once it is erased' : ''}`, async () => {
      const { db, intake } = core.rooms;
      const T = Math.floor(Date.now() / 1000) - 600;
      const said = [
        { time: T, channel: 'early', tags: ['b'] },
        { time: T + 60, channel: 'late', tags: ['a'] },
      ] as const;
      for (const [first, second] of [said, said.toReversed()]) {
        const hash = sha256Hex(randomBytes(8));
        const fields = { address: alice.address, signature: alice.sign(hash), channel: 'early', tags: [] };
        const file = { hash, sizeBytes: 8, contentType: 'text/plain' };
        const { message } = intake.client.readUpload(fields, file);
        const tell = async ({ time, channel, tags }: (typeof said)[number]) => {
          const content = { ...message.content, tags };
          const told = { ...message, time, channel, content, notedMs: time * 1_000 };
          await intake.peer.keep([{ accepted: acceptMessage(told) }]);
        };
        const look = async () => {
          const row = await db
            .selectFrom('messages')
            .selectAll()
            .where('item_hash', '=', message.itemHash)
            .executeTakeFirstOrThrow();
          const { status, time, channel, tags, noted_ms: notedMs, content } = row;
          return { said: { time, channel, tags }, status, notedMs, content };
        };
        await tell(first!);
        await core.send(alice, { type: 'FORGET', content: { hashes: [message.itemHash] } });
        if (isErased) {
          await eraseForgotten(db, Date.now() + ERASE_AFTER_MS);
          const { time, channel, tags } = second!;
          const changed = { time, channel, tags, noted_ms: time * 1_000 };
          await intake.peer.keep(await intake.peer.read([await skeletonOf(message.itemHash, changed)]));
        } else await tell(second!);
        const { content, ...kept } = await look();
        assert.deepEqual(kept, { said: said[0], status: 'forgotten', notedMs: T * 1_000 });
        assert.deepEqual((content as { tags?: unknown } | null)?.tags, isErased ? undefined : said[0].tags);
      }
    });

  test('is believed of nobody but configured peers', async () => {
    const { body } = await core.send(alice, { type: 'POST', content: { type: 'note', content: 'a' } });
    const frame = await skeletonOf(body.item_hash);
    for (const source of ['gossip', 'offer'] as const)
      assert.deepEqual(await core.rooms.intake[source].read([frame]), [{ fault: 'refused' }], source);
  });
});
