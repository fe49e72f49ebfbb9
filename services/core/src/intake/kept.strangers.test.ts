import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, before, beforeEach, describe, test } from 'node:test';
import { buildNetworkMessage, buildStoredMessage, signMessage } from '@skerry/client';
import { parseItemHash, sha256Hex } from '@skerry/protocol';
import { encodeFrames } from '../peers/sync/frames.ts';
import { digestState } from '../state/digest.ts';
import { clearMessages } from '../testing/clear.ts';
import { createTestCore, signers, type TestCore } from '../testing/core.ts';

const { alice, bob, node } = signers;
const T0 = 1_700_000_000;
const HOUR_MS = 3_600_000;

/** What anybody can bring of a message that is kept: less than it says, or other words about it. */
describe('a message that is kept stays as it is, whatever strangers bring of it', () => {
  let core: TestCore;
  let nowMs = T0 * 1000;
  before(async () => {
    core = await createTestCore({ now: () => nowMs });
  });
  beforeEach(async () => {
    nowMs = T0 * 1000;
    await clearMessages(core);
  });
  after(() => core[Symbol.asyncDispose]());

  async function storeFile(bytes: Buffer): Promise<void> {
    const blob = await core.blobs.receive(Readable.from([bytes]), bytes.length);
    await core.rooms.files.storeUnpinned(blob, 'application/json');
    await blob.discard();
  }
  async function loseFile(hash: string): Promise<void> {
    await core.rooms.db.deleteFrom('files').where('hash', '=', hash).execute();
    await core.blobs.remove(parseItemHash(hash));
  }
  /** As one node passes it on to another. */
  const frameOf = (body: string, notedMs: number, channel?: string) => {
    const { message } = JSON.parse(body);
    return JSON.stringify({ message: { ...message, ...(channel ? { channel } : {}) }, noted_ms: notedMs });
  };
  async function offer(...frames: string[]): Promise<void> {
    await core.rooms.sync.offers.take(encodeFrames(frames), 'a stranger');
    await core.rooms.pipeline.idle();
  }
  async function look(itemHash: string) {
    await core.rooms.pipeline.idle();
    const { channel, status } = await core.rooms.db
      .selectFrom('messages')
      .select(['channel', 'status'])
      .where('item_hash', '=', itemHash)
      .executeTakeFirstOrThrow();
    const { cursor: _, ...digest } = await digestState(core.rooms.db);
    const { total } = (await core.get('/messages?tags=t')).body.pagination;
    return { channel, status, total, digest };
  }

  const tagged = () =>
    buildStoredMessage(
      { type: 'POST', content: { type: 'note', content: { tags: ['t'] } }, channel: 'own', time: T0 },
      alice,
    );

  test('one whose content is a file that was not read for it, beside another that is too large', async () => {
    const own = tagged();
    await storeFile(Buffer.from(own.content));
    assert.equal((await core.post('/messages', own.body)).status, 200);
    const before = await look(own.itemHash);
    assert.deepEqual([before.status, before.channel, before.total], ['processed', 'own', 1]);
    nowMs += 30 * HOUR_MS;
    const large = Buffer.alloc(5 * 1024 * 1024, 1);
    await storeFile(large);
    const other = buildStoredMessage({ type: 'POST', content: {}, time: T0 }, bob);
    const hash = sha256Hex(large);
    const message = { ...JSON.parse(other.body).message, item_hash: hash };
    message.signature = bob.sign(`ETH\n${bob.address}\nPOST\n${hash}`);
    await offer(JSON.stringify({ message, noted_ms: nowMs }), frameOf(own.body, T0 * 1000, "a stranger's"));
    assert.deepEqual(await look(own.itemHash), before);
  });

  test('one whose content is not here any more', async () => {
    const own = tagged();
    await storeFile(Buffer.from(own.content));
    await core.post('/messages', own.body);
    const before = await look(own.itemHash);
    await loseFile(own.itemHash);
    nowMs += 30 * HOUR_MS;
    assert.equal((await core.post('/messages', own.body)).status, 200);
    assert.deepEqual(await look(own.itemHash), before);
  });

  test('a forgotten one, sent again without its content', async () => {
    const post = signMessage(
      { type: 'POST', content: { type: 'note', content: 1 }, timestamp: T0, nonce: '1' },
      alice,
    );
    await core.post('/messages', post.body);
    const amend = buildStoredMessage(
      { type: 'POST', content: { type: 'amend', ref: post.itemHash, content: 2 }, time: T0 },
      alice,
    );
    await storeFile(Buffer.from(amend.content));
    assert.equal((await core.post('/messages', amend.body)).status, 200);
    const forget = signMessage(
      { type: 'FORGET', content: { hashes: [post.itemHash] }, timestamp: T0, nonce: '2' },
      alice,
    );
    assert.equal((await core.post('/messages', forget.body)).status, 200);
    const before = await look(amend.itemHash);
    assert.equal(before.status, 'forgotten');
    await loseFile(amend.itemHash);
    nowMs += 30 * HOUR_MS;
    const again = await core.post('/messages', amend.body);
    assert.deepEqual([again.status, again.body.code], [410, 'MESSAGE_FORGOTTEN']);
    assert.deepEqual(await look(amend.itemHash), before);
  });

  test('a delegate may write to one channel, and a stranger says that it was another one', async () => {
    const content = { authorizations: [{ address: node.address, channels: ['own'] }] };
    await core.post(
      '/messages',
      signMessage(
        { type: 'AGGREGATE', content: { key: 'security', content }, timestamp: T0 - 5_000, nonce: '1' },
        alice,
      ).body,
    );
    const { body, itemHash } = buildNetworkMessage(
      {
        type: 'POST',
        content: { address: alice.address, time: T0, type: 'note', content: { tags: ['t'] } },
        channel: 'own',
        time: T0,
      },
      node,
    );
    assert.equal((await core.post('/messages', body)).status, 200);
    const before = await look(itemHash);
    assert.deepEqual([before.status, before.channel], ['processed', 'own']);
    nowMs += HOUR_MS;
    await offer(frameOf(body, T0 * 1000, "a stranger's"));
    assert.deepEqual(await look(itemHash), before);
    const { message } = JSON.parse(body);
    await core.post('/messages', JSON.stringify({ message: { ...message, channel: "a stranger's" } }));
    assert.deepEqual(await look(itemHash), before);
  });
});
