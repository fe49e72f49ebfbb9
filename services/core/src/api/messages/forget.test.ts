import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { buildNetworkMessage, type MessageDraft, type Signer, signMessage } from '@skerry/client';
import { ERASE_AFTER_MS, eraseForgotten } from '../../intake/erase.ts';
import { digestState } from '../../state/digest.ts';
import { createTestCore, instanceContent, signers, type TestCore } from '../../testing/core.ts';

const T0 = 1_700_000_000;
const { alice, bob } = signers;
let counter = 0;
const signed = (signer: Signer, type: string, content: unknown, at = 1) =>
  signMessage({ type, content, timestamp: T0 + at, nonce: `${counter++}` } as MessageDraft, signer);

describe('FORGET', () => {
  let core: TestCore;
  let nowMs = Date.now();
  before(async () => {
    core = await createTestCore({ now: () => nowMs });
  });
  after(() => core[Symbol.asyncDispose]());

  const put = (one: { body: string }) => core.post('/messages', one.body);
  const statusOf = async (hash: string) => {
    await core.rooms.pipeline.idle();
    const { body } = await core.get(`/messages/${hash}/status`);
    return [body.status, body.reason?.code ?? null];
  };
  const forget = async (hashes: string[], by: Signer = alice) => {
    const message = signed(by, 'FORGET', { hashes, reason: 'why not' }, 9);
    const { status, body } = await put(message);
    await core.rooms.pipeline.idle();
    return { status, code: body.code ?? body.reason?.code, hash: message.itemHash };
  };
  const note = (text: string) =>
    signed(alice, 'POST', { type: 'note', content: { text }, tags: ['forget-me'] });

  test('of the message only the skeleton is left: in no list, no content, and its resubmission is gone', async () => {
    const one = note('a secret sentence');
    await put(one);
    const before = (await core.get('/messages?tags=forget-me')).body.pagination.total;
    const { status, hash } = await forget([one.itemHash]);
    assert.equal(status, 200);
    const { body } = await core.get(`/messages/${one.itemHash}`);
    assert.deepEqual(
      [body.status, body.content, body.signed_text, body.message.content, body.message.item_content],
      ['forgotten', null, null, undefined, undefined],
    );
    assert.deepEqual([body.forgotten_by, body.sender, body.type], [[hash], alice.address, 'POST']);
    assert.equal(JSON.stringify(body).includes('secret sentence'), false);
    assert.equal((await core.get(`/messages/${one.itemHash}/content`)).status, 410);
    assert.equal((await core.get('/messages?tags=forget-me')).body.pagination.total, before - 1);
    for (const list of ['/messages', '/messages.json', '/posts.json']) {
      const answer = await core.get(`${list}?hashes=${one.itemHash}`);
      assert.equal((answer.body.messages ?? answer.body.posts).length, 0, list);
    }
    const again = await put(one);
    assert.deepEqual([again.status, again.body.code], [410, 'MESSAGE_FORGOTTEN']);
    const { body: events } = await core.get('/events?limit=100');
    const removed = events.events.find((event: { kind: string }) => event.kind === 'message_removed');
    assert.deepEqual([removed.data.item_hash, removed.data.status], [one.itemHash, 'forgotten']);
    const second = await forget([one.itemHash]);
    assert.deepEqual(
      (await core.get(`/messages/${one.itemHash}`)).body.forgotten_by,
      [hash, second.hash].sort(),
    );
  });

  test('a message that was rejected stays so, and what it said is shown no more', async () => {
    const aggregate = signed(alice, 'AGGREGATE', { key: 'k', content: {} });
    const content = { type: 'amend', ref: aggregate.itemHash, content: 'a rejected sentence' };
    const one = signed(alice, 'POST', content);
    const inNetworkForm = buildNetworkMessage({ type: 'POST', content, time: T0 }, alice);
    for (const each of [aggregate, one, inNetworkForm]) await put(each);
    const hashes = [one.itemHash, inNetworkForm.itemHash];
    const read = async () => {
      const list = `/messages.json?hashes=${hashes}&msgStatuses=rejected&bodies=shared`;
      const answers = hashes.map(async (hash) => (await core.get(`/messages/${hash}`)).body);
      const { messages } = (await core.get(list)).body;
      assert.equal(messages.length, hashes.length);
      return [...(await Promise.all(answers)), ...messages];
    };
    const isTold = (body: unknown) => JSON.stringify(body).includes('rejected sentence');
    assert.ok((await read()).every(isTold));
    const { status, hash } = await forget(hashes);
    assert.equal(status, 200);
    const after = await read();
    assert.ok(!after.some(isTold));
    for (const { status, reason, content, message, forgotten_by } of after.slice(0, hashes.length))
      assert.deepEqual(
        [
          status,
          reason.code,
          content,
          message.content,
          message.item_content,
          message.item_type,
          forgotten_by,
        ],
        ['rejected', 'AMEND_TARGET_NOT_FOUND', null, null, null, 'inline', [hash]],
      );
  });

  test('a target that is not here yet is waited for', async () => {
    const one = note('late');
    const early = await forget([one.itemHash]);
    assert.deepEqual([early.status, early.code], [202, 'FORGET_TARGET_NOT_FOUND']);
    await put(one);
    assert.deepEqual(await statusOf(one.itemHash), ['forgotten', 'MESSAGE_FORGOTTEN']);
    assert.deepEqual(await statusOf(early.hash), ['processed', null]);
  });

  test('strangers and FORGETs of FORGETs are rejected, all or nothing', async () => {
    const [one, other] = [note('kept'), note('kept too')];
    const bobs = signed(bob, 'POST', { type: 'note' });
    for (const each of [one, other, bobs]) await put(each);
    assert.deepEqual((await forget([one.itemHash], bob)).code, 'NOT_PERMITTED');
    assert.deepEqual((await forget([one.itemHash, bobs.itemHash])).code, 'NOT_PERMITTED');
    assert.deepEqual(await statusOf(one.itemHash), ['processed', null]);
    const { hash } = await forget([other.itemHash]);
    const undo = await forget([hash]);
    assert.deepEqual([undo.status, undo.code], [400, 'FORGET_FORGET']);
    assert.deepEqual(await statusOf(undo.hash), ['rejected', 'FORGET_FORGET']);
    assert.deepEqual(await statusOf(other.itemHash), ['forgotten', 'MESSAGE_FORGOTTEN']);
  });

  test('what belongs to a forgotten thing goes with it: amends of a post, changes of an instance', async () => {
    const post = note('with amends');
    const amend = signed(alice, 'POST', { type: 'amend', ref: post.itemHash, content: { text: '2' } }, 2);
    const machine = signed(alice, 'INSTANCE', instanceContent);
    const id = machine.itemHash;
    const stop = signed(alice, 'INSTANCE_CONTROL', { instance_id: id, action: 'stop' }, 2);
    for (const each of [post, amend, machine, stop]) assert.equal((await put(each)).status, 200);
    await forget([post.itemHash, id]);
    for (const each of [post, amend, machine, stop])
      assert.deepEqual(await statusOf(each.itemHash), ['forgotten', 'MESSAGE_FORGOTTEN']);
    assert.equal((await core.get(`/instances/${id}`)).body.code, 'INSTANCE_NOT_FOUND');
    const late = signed(alice, 'INSTANCE_CONTROL', { instance_id: id, action: 'start' }, 3);
    assert.equal((await put(late)).body.code, 'MESSAGE_FORGOTTEN');
    const { body: events } = await core.get(`/events?cursor=${await core.rooms.events.lastCursor()}`);
    assert.deepEqual(events.events, []);
  });

  test('forgetting the latest amend brings the one before it back', async () => {
    const post = note('original');
    const amends = [2, 3].map((at) =>
      signed(alice, 'POST', { type: 'amend', ref: post.itemHash, content: { at } }, at),
    );
    for (const each of [post, ...amends]) await put(each);
    const contentOf = async () =>
      (await core.get(`/posts.json?hashes=${post.itemHash}`)).body.posts[0].content;
    assert.deepEqual(await contentOf(), { at: 3 });
    await forget([amends[1]!.itemHash]);
    assert.deepEqual(await contentOf(), { at: 2 });
    await forget([amends[0]!.itemHash]);
    assert.deepEqual(await contentOf(), { text: 'original' });
  });

  test('a program goes, and its file is kept no longer for it', async () => {
    const content = { name: 'p', code: 'x', runtime: 'python3', memory: 128, timeout: 5 };
    const program = signed(alice, 'PROGRAM', content);
    await put(program);
    assert.equal((await core.post(`/run/${program.itemHash}`, '{}')).body.code, 'NO_RUNNER');
    await forget([program.itemHash]);
    assert.equal((await core.post(`/run/${program.itemHash}`, '{}')).body.code, 'PROGRAM_NOT_FOUND');
  });

  test('after a day what it said leaves the disk, and it stays forgotten whatever becomes known', async () => {
    const one = note('erase me');
    const delegated = signed(bob, 'POST', { type: 'note', address: alice.address, content: 'by bob' }, 60);
    const grant = (at: number, ...granted: object[]) =>
      signed(alice, 'AGGREGATE', { key: 'security', content: { authorizations: granted } }, at);
    for (const each of [grant(50, { address: bob.address }), one, delegated]) await put(each);
    await forget([one.itemHash, delegated.itemHash]);
    const { db } = core.rooms;
    const texts = async () =>
      db
        .selectFrom('messages')
        .select(['content', 'source_text'])
        .where('item_hash', 'in', [one.itemHash, delegated.itemHash])
        .execute();
    nowMs += ERASE_AFTER_MS - 1_000;
    await eraseForgotten(db, nowMs);
    assert.ok((await texts()).every((row) => row.content !== null));
    nowMs += 2_000;
    await eraseForgotten(db, nowMs);
    assert.deepEqual(await texts(), Array(2).fill({ content: null, source_text: null }));
    const { messages } = await digestState(db);
    assert.equal((await put(one)).status, 410);
    const { body } = await core.get(`/messages/${one.itemHash}`);
    assert.deepEqual([body.status, body.content, body.message.size], ['forgotten', null, null]);
    // Both are decided again, one without its text.
    await put(grant(70));
    const after = await digestState(db);
    assert.deepEqual(await statusOf(delegated.itemHash), ['forgotten', 'MESSAGE_FORGOTTEN']);
    assert.deepEqual(await statusOf(one.itemHash), ['forgotten', 'MESSAGE_FORGOTTEN']);
    assert.equal(after.messages.count, messages.count + 1);
  });
});
