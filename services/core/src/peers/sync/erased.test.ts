import assert from 'node:assert/strict';
import { test } from 'node:test';
import { diffNodes, type MessageDraft, type Signer, signMessage } from '@skerry/client';
import { ERASE_AFTER_MS, eraseForgotten } from '../../intake/erase.ts';
import { digestState } from '../../state/digest.ts';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import { linkTo } from './testing/setup.ts';

const { alice, bob } = signers;
const signal = new AbortController().signal;
const HOUR_MS = 3_600_000;

/** Two nodes that know of each other, and the clock that both have. */
async function createPair(stack: AsyncDisposableStack) {
  const clock = { nowMs: Date.now() };
  const cores: TestCore[] = [];
  for (const peer of [1, 0]) {
    const peers = [linkTo(`node-${peer}`, () => cores[peer]!)];
    cores.push(stack.use(await createTestCore({ peers, now: () => clock.nowMs })));
  }
  const sign = (signer: Signer, type: string, content: unknown) =>
    signMessage({ type, content, timestamp: Math.floor(clock.nowMs / 1000) } as MessageDraft, signer);
  const meet = async () => {
    for (const core of [...cores, ...cores]) {
      assert.ok(await core.rooms.sync.syncer.round(signal));
      await core.rooms.pipeline.idle();
    }
  };
  return { clock, first: cores[0]!, second: cores[1]!, sign, meet };
}

const put = async (core: TestCore, { body, itemHash }: { body: string; itemHash: string }) => {
  const { status } = await core.post('/messages', body);
  assert.equal(status, 200);
  await core.rooms.pipeline.idle();
  return itemHash;
};
const statusOf = async (core: TestCore, hash: string) =>
  (await core.get(`/messages/${hash}/status`)).body.status as string;
const digestOf = async ({ rooms: { db } }: TestCore) =>
  (({ cursor: _, ...digest }) => digest)(await digestState(db));
const permit = (...authorizations: object[]) => ({ key: 'security', content: { authorizations } });

/** While the nodes are apart, one takes the permission back, and the other forgets a post by it. */
async function forgetApart(stack: AsyncDisposableStack, apartMs: number) {
  const { clock, first, second, sign, meet } = await createPair(stack);
  await put(first, sign(alice, 'AGGREGATE', permit({ address: bob.address })));
  const post = sign(alice, 'POST', { type: 'note', content: 'of alice' });
  await put(first, post);
  await meet();
  clock.nowMs += HOUR_MS;
  await put(second, sign(alice, 'AGGREGATE', permit()));
  clock.nowMs += HOUR_MS;
  const forget = await put(first, sign(bob, 'FORGET', { hashes: [post.itemHash] }));
  assert.equal(await statusOf(first, post.itemHash), 'forgotten');
  clock.nowMs += apartMs;
  await eraseForgotten(first.rooms.db, clock.nowMs);
  await meet();
  for (const core of [first, second]) assert.equal(await statusOf(core, forget), 'rejected');
  return { first, second, post };
}

test('a FORGET that a revocation defeats within a day is undone on every node', async () => {
  await using stack = new AsyncDisposableStack();
  const { first, second, post } = await forgetApart(stack, ERASE_AFTER_MS - 1);
  assert.equal(await statusOf(first, post.itemHash), 'processed');
  assert.deepEqual(await digestOf(first), await digestOf(second));
});

test('later, a node that erased the text has it forgotten until somebody sends it again', async () => {
  await using stack = new AsyncDisposableStack();
  const { first, second, post } = await forgetApart(stack, ERASE_AFTER_MS);
  const statuses = async () => [await statusOf(first, post.itemHash), await statusOf(second, post.itemHash)];
  assert.deepEqual(await statuses(), ['forgotten', 'processed']);
  assert.notDeepEqual((await digestOf(first)).messages, (await digestOf(second)).messages);
  // Both have the message, so no session fetches it, and no comparison of what they have names it.
  const { onlyFirst, onlySecond } = await diffNodes(await first.listen(), await second.listen());
  assert.deepEqual([onlyFirst, onlySecond], [[], []]);
  await put(first, post);
  assert.deepEqual(await statuses(), ['processed', 'processed']);
  assert.deepEqual(await digestOf(first), await digestOf(second));
});

test('what was erased and turns out not to have been permitted is passed on, and forgotten again with the permission', async () => {
  await using stack = new AsyncDisposableStack();
  const { clock, first, second, sign, meet } = await createPair(stack);
  await put(first, sign(alice, 'AGGREGATE', permit({ address: bob.address })));
  const content = { type: 'note', address: alice.address, content: 'in the name of alice' };
  const post = await put(first, sign(bob, 'POST', content));
  await meet();
  clock.nowMs += 60_000;
  const revocation = await put(second, sign(alice, 'AGGREGATE', permit()));
  const forget = await put(first, sign(alice, 'FORGET', { hashes: [post] }));
  clock.nowMs += ERASE_AFTER_MS;
  await eraseForgotten(first.rooms.db, clock.nowMs);
  await meet();

  const link = linkTo('erased', () => first);
  const third = stack.use(await createTestCore({ peers: [link], now: () => clock.nowMs }));
  assert.ok(await third.rooms.sync.syncer.round(signal), JSON.stringify(third.rooms.sync.syncer.view()));
  await third.rooms.pipeline.idle();
  const cores = [first, second, third];
  for (const core of cores) {
    assert.deepEqual([await statusOf(core, post), await statusOf(core, forget)], ['rejected', 'processed']);
    assert.deepEqual(await digestOf(core), await digestOf(second));
    const { body } = await core.get(`/messages.json?hashes=${post}&msgStatuses=rejected&bodies=shared`);
    assert.equal(body.messages.length, 1);
    assert.equal(body.messages[0].shared, null);
  }

  await put(second, sign(alice, 'FORGET', { hashes: [revocation] }));
  await meet();
  assert.ok(await third.rooms.sync.syncer.round(signal));
  await third.rooms.pipeline.idle();
  for (const core of cores) {
    assert.equal(await statusOf(core, post), 'forgotten');
    assert.deepEqual(await digestOf(core), await digestOf(second));
  }
});
