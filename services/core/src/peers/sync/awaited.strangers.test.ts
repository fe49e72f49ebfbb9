import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { buildStoredMessage, signMessage } from '@skerry/client';
import { answerRanges, type SyncKey } from '@skerry/protocol';
import { erasedText } from '../../intake/erased.ts';
import { signers, type TestCore } from '../../testing/core.ts';
import type { PeerLink } from './link.ts';
import { MISSING_MAX } from './session.ts';
import { SetIndex } from './set-index.ts';
import { linkTo } from './testing/setup.ts';
import { createNode, createSource, MINUTE_MS, note, round, seen } from './testing/waiting.ts';

const { alice, bob } = signers;

/** What no node can verify, and a peer is not to blame for. */
const UNFIT = Buffer.from('{"chain":"TEZOS"}');
/** A peer whose messages up to that number are unfit. */
function unfitUntil(end: number, find: () => TestCore): PeerLink {
  const link = linkTo('peer', find);
  const isUnfit = (frame: Buffer) => Number(/nonce (\d+)/.exec(frame.toString())![1]) < end;
  return {
    ...link,
    fetchMessages: async (keys, ended) =>
      (await link.fetchMessages(keys, ended)).map((frame) => (isUnfit(frame) ? UNFIT : frame)),
  };
}

test('a process that only compares is in step without what this node refuses, once it was waited for', async () => {
  await using stack = new AsyncDisposableStack();
  const source = await createSource(stack, 2);
  const peer = unfitUntil(2, () => source);
  const { core, time } = await createNode(stack, [peer], false);
  const sendBoth = async (n: number) => {
    const { body } = signMessage(note(n), bob);
    await source.post('/messages', body);
    return () => core.post('/messages', body);
  };
  // The process that leads takes this one in the end.
  const take = await sendBoth(10);
  assert.equal(await round(core), false);
  await take();
  time.uptimeMs += 9 * MINUTE_MS;
  assert.equal(await round(core), false);
  assert.equal(seen(core), 'syncing syncing');
  // What came gave it a moment.
  time.uptimeMs += MINUTE_MS + 100;
  assert.ok(await round(core));
  assert.equal(seen(core), 'synced synced');
  time.uptimeMs += 60 * MINUTE_MS;
  await (await sendBoth(11))();
  assert.ok(await round(core));
  // Something new is waited for as ever: first it may be on its way, then it is missing.
  await sendBoth(12);
  assert.ok(await round(core));
  assert.equal(await round(core), false);
});

describe('a process that only compares', () => {
  test('does not wait for what a peer only counts in its greeting', async () => {
    await using stack = new AsyncDisposableStack();
    const source = await createSource(stack, 2);
    const link = linkTo('liar', () => source);
    const liar: PeerLink = {
      ...link,
      greet: async (ended) => ({ ...(await link.greet(ended)), messages: 1_000_000_000 }),
    };
    const { core } = await createNode(stack, [liar], false);
    assert.equal(await round(core), false);
    for (const n of [0, 1]) await core.send(alice, note(n));
    assert.ok(await round(core));
    assert.equal(seen(core), 'synced synced');
  });

  test('does not wait longer for a peer that lists without end, because clients post', async () => {
    await using stack = new AsyncDisposableStack();
    const source = await createSource(stack, 0);
    const madeUp = SetIndex.of(
      Array.from({ length: MISSING_MAX + 1 }, (_, time): SyncKey => ({ time, id: new Uint8Array(36) })),
    );
    const liar: PeerLink = {
      ...linkTo('liar', () => source),
      askRanges: async (question) => ({ answer: answerRanges(madeUp, question), sizeBytes: 1 }),
    };
    const { core, time } = await createNode(stack, [liar], false);
    await round(core);
    time.uptimeMs = 10 * MINUTE_MS - 1;
    assert.equal(seen(core), 'syncing syncing');
    for (const n of [0, 1]) await core.send(alice, note(n));
    await round(core);
    time.uptimeMs += 1;
    assert.equal(seen(core), 'apart stalled');
  });

  test('gives up nothing that can be had, whatever came of what is behind it: it may be that nobody fetches', async () => {
    await using stack = new AsyncDisposableStack();
    const source = await createSource(stack, 3);
    const { core, time } = await createNode(stack, [linkTo('peer', () => source)], false);
    assert.equal(await round(core), false);
    // By gossip, or from a client.
    await core.send(alice, note(2));
    for (let minute = 0; minute < 15; minute++) {
      assert.equal(await round(core), false);
      time.uptimeMs += MINUTE_MS;
    }
    assert.equal(seen(core), 'apart stalled');
  });

  test('gives up only what it has seen to be unfit: what did not fit into a body is asked for, too', async () => {
    await using stack = new AsyncDisposableStack();
    const source = await createSource(stack, 3);
    const link = unfitUntil(2, () => source);
    const asked: number[] = [];
    const peer: PeerLink = {
      ...link,
      fetchMessages: async (keys, ended) => {
        asked.push(keys.length);
        return (await link.fetchMessages(keys, ended)).slice(0, 1);
      },
    };
    const { core, time } = await createNode(stack, [peer], false);
    const refuse = async () => {
      time.uptimeMs += 11 * MINUTE_MS;
      assert.equal(await round(core), false);
    };
    assert.equal(await round(core), false);
    assert.deepEqual(asked, []);
    for (let n = 0; n < 3; n++) await refuse();
    assert.deepEqual(asked, [3, 1, 2, 1, 1]);
    await core.send(alice, note(2));
    assert.ok(await round(core));
  });

  test('gives up nothing that a peer lists and never sends', async () => {
    await using stack = new AsyncDisposableStack();
    const source = await createSource(stack, 1);
    const silent: PeerLink = { ...linkTo('silent', () => source), fetchMessages: async () => [] };
    const { core, time } = await createNode(stack, [silent], false);
    for (let minute = 0; minute < 12; minute++) {
      assert.equal(await round(core), false);
      time.uptimeMs += MINUTE_MS;
    }
    assert.equal(core.rooms.sync.syncer.view().peers[0]!.failure, 'UPSTREAM_UNAVAILABLE');
  });

  test('gives up nothing while nothing comes: it may be that nobody fetches', async () => {
    await using stack = new AsyncDisposableStack();
    const source = await createSource(stack, 3);
    const { core, time } = await createNode(stack, [linkTo('peer', () => source)], false);
    for (let minute = 0; minute < 15; minute++) {
      assert.equal(await round(core), false);
      time.uptimeMs += MINUTE_MS;
    }
    assert.equal(seen(core), 'apart stalled');
    // Whoever leads is back, and goes from the first to the last.
    await core.send(alice, note(0));
    assert.equal(await round(core), false);
    for (const n of [1, 2]) await core.send(alice, note(n));
    assert.ok(await round(core));
    assert.equal(seen(core), 'synced synced');
  });

  for (const wanting of ['peer', 'node'] as const)
    test(`gives up a message that is here, and whose text the ${wanting} wants in vain`, async () => {
      await using stack = new AsyncDisposableStack();
      const source = await createSource(stack, 0);
      const { core, time } = await createNode(stack, [linkTo('peer', () => source)], false);
      const [wants, has] = wanting === 'peer' ? [source, core] : [core, source];
      const { type, content } = note(0);
      const message = buildStoredMessage({ type, content, time: Math.floor(Date.now() / 1000) }, alice);
      const headers = { 'content-type': 'application/octet-stream' };
      assert.equal((await has.post('/storage/add_file', Buffer.from(message.content), headers)).status, 200);
      assert.equal((await has.post('/messages', message.body)).status, 200);
      const row = await has.rooms.db.selectFrom('messages').selectAll().executeTakeFirstOrThrow();
      const { peer } = wants.rooms.intake;
      await peer.keep(await peer.read([Buffer.from(erasedText(row))]));
      assert.equal(await round(core), false);
      time.uptimeMs += 11 * MINUTE_MS;
      assert.ok(await round(core));
      assert.equal(seen(core), 'synced synced');
    });
});
