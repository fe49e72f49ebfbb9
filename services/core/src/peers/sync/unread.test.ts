import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { buildStoredMessage, type MessageDraft, signMessage } from '@skerry/client';
import { parseItemHash, WANTED_KEYS_MAX } from '@skerry/protocol';
import { sql } from 'kysely';
import { ERASE_AFTER_MS, eraseForgotten } from '../../intake/erase.ts';
import { digestState } from '../../state/digest.ts';
import { messageKey } from '../../store/dependency-keys.ts';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import type { PeerLink } from './link.ts';
import { linkTo } from './testing/setup.ts';

const { alice, bob } = signers;
const signal = new AbortController().signal;
const HOUR_MS = 3_600_000;

/** Two nodes that know of each other, of which the second one never gets a message's file. */
async function createPair(
  stack: AsyncDisposableStack,
  change: (link: PeerLink) => PeerLink = (link) => link,
) {
  const clock = { nowMs: Date.now() };
  const cores: TestCore[] = [];
  for (const peer of [1, 0]) {
    const peers = [change(linkTo(`node-${peer}`, () => cores[peer]!))];
    cores.push(stack.use(await createTestCore({ peers, now: () => clock.nowMs })));
  }
  const [first, second] = cores as [TestCore, TestCore];
  const put = async (core: TestCore, body: string, expected = 200) => {
    assert.equal((await core.post('/messages', body)).status, expected);
    await core.rooms.pipeline.idle();
  };
  const meet = async () => {
    for (const core of [...cores, ...cores]) {
      assert.ok(await core.rooms.sync.syncer.round(signal));
      await core.rooms.pipeline.idle();
    }
  };
  const time = () => Math.floor(clock.nowMs / 1000);
  const post = buildStoredMessage(
    { type: 'POST', time: time(), content: { type: 'note', content: 'a file' } },
    alice,
  );
  const headers = { 'content-type': 'application/octet-stream' };
  await first.post('/storage/add_file', Buffer.from(post.content), headers);
  await put(first, post.body);
  await put(second, post.body, 202);
  clock.nowMs += HOUR_MS;
  await second.rooms.pipeline.expire();
  await second.rooms.pipeline.idle();
  const sign = (type: string, content: object, signer = alice) =>
    signMessage({ type, content, timestamp: time() } as MessageDraft, signer);
  const forget = sign('FORGET', { hashes: [post.itemHash] });
  await put(first, forget.body);
  clock.nowMs += ERASE_AFTER_MS;
  await eraseForgotten(first.rooms.db, clock.nowMs);
  await first.rooms.db.deleteFrom('files').where('hash', '=', post.itemHash).execute();
  await first.blobs.remove(parseItemHash(post.itemHash));
  return { first, second, post, forget, put, meet, sign };
}

const statusOf = async (core: TestCore, hash: string) =>
  (await core.get(`/messages/${hash}/status`)).body.status as string;
const digestOf = async ({ rooms: { db } }: TestCore) =>
  (({ cursor: _, ...digest }) => digest)(await digestState(db));

describe('a message whose content never came', () => {
  test('is forgotten as on a peer that read it, with all that hangs on it', async () => {
    await using stack = new AsyncDisposableStack();
    const { first, second, post, forget, put, meet, sign } = await createPair(stack);
    const amend = sign('POST', { type: 'amend', ref: post.itemHash, content: 'later' });
    await put(second, amend.body, 202);
    await meet();
    for (const core of [first, second]) {
      assert.equal(await statusOf(core, forget.itemHash), 'processed');
      assert.equal(await statusOf(core, post.itemHash), 'forgotten');
    }
    assert.equal(await statusOf(second, amend.itemHash), await statusOf(first, amend.itemHash));
    assert.deepEqual(await digestOf(second), await digestOf(first));
    const fingerprintOf = ({ rooms: { sync } }: TestCore) =>
      sync.set.index.fingerprint(0, sync.set.index.size);
    assert.deepEqual(fingerprintOf(second), fingerprintOf(first));
  });

  test('is asked for only where something hangs on it, and once in ten minutes', async () => {
    await using stack = new AsyncDisposableStack();
    let asked = 0;
    const { second, meet } = await createPair(stack, (link) => ({
      ...link,
      async fetchMessages(keys, until) {
        asked += keys.length;
        // It has nothing of it.
        const frames = await link.fetchMessages(keys, until);
        return frames.filter((frame) => !frame.toString().startsWith('{"forgotten"'));
      },
    }));
    await meet();
    // The FORGET, and what hangs on it; and the other way round that, which is not forgotten here.
    assert.equal(asked, 3);
    await meet();
    assert.equal(asked, 3);
    assert.equal(second.rooms.sync.syncer.view().state, 'synced');
  });

  test('is not taken from a peer that answers with another message', async () => {
    await using stack = new AsyncDisposableStack();
    const content = { type: 'note', content: 'unasked' };
    const unasked = signMessage({ type: 'POST', content }, bob);
    const { second, post, forget, meet } = await createPair(stack, (link) => ({
      ...link,
      async fetchMessages(keys, until) {
        const frames = await link.fetchMessages(keys, until);
        return frames.map((frame) =>
          frame.toString().startsWith('{"forgotten"') ? Buffer.from(unasked.body) : frame,
        );
      },
    }));
    await meet();
    assert.equal((await second.get(`/messages/${unasked.itemHash}/status`)).status, 404);
    assert.equal(await statusOf(second, post.itemHash), 'rejected');
    assert.equal(await statusOf(second, forget.itemHash), 'pending');
  });

  test('is asked for in one request at a time, of a size that peers answer, however many there are', async () => {
    await using stack = new AsyncDisposableStack();
    const asked: number[] = [];
    const { second, post } = await createPair(stack, (link) => ({
      ...link,
      fetchMessages(keys, until) {
        asked.push(keys.length);
        return link.fetchMessages(keys, until);
      },
    }));
    const { db, sync } = second.rooms;
    // A few on the first page, and all of the next one.
    const hashOf = sql`md5(n::text) || md5('of ' || n)`;
    await sql`insert into messages select one.* from messages m, generate_series(1, 3000) n,
      jsonb_populate_record(m, jsonb_build_object('item_hash', ${hashOf}, 'time', m.time - n)) as one
      where m.item_hash = ${post.itemHash}`.execute(db);
    await sql`insert into dependencies (key, item_hash)
      select ${messageKey('')} || ${hashOf}, ${post.itemHash} from generate_series(950, 3000) n`.execute(db);
    assert.ok(await sync.syncer.round(signal));
    assert.ok(Math.max(...asked) > 800 && Math.max(...asked) <= WANTED_KEYS_MAX, `${asked}`);
  });
});
