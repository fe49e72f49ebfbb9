import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type MessageDraft, signMessage } from '@skerry/client';
import { ERASE_AFTER_MS, eraseForgotten } from '../../intake/erase.ts';
import { erasedText } from '../../intake/erased.ts';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import { linkTo } from './testing/setup.ts';

const { alice, bob } = signers;
const signal = new AbortController().signal;

const rowOf = ({ rooms: { db } }: TestCore, hash: string) =>
  db.selectFrom('messages').selectAll().where('item_hash', '=', hash).executeTakeFirstOrThrow();
async function lookAt(core: TestCore, hash: string) {
  const { status, erased, content } = await rowOf(core, hash);
  return [status, erased, content !== null];
}
const fingerprintOf = ({ rooms: { sync } }: TestCore) => sync.set.index.fingerprint(0, sync.set.index.size);

async function meet({ rooms }: TestCore): Promise<void> {
  assert.ok(await rooms.sync.syncer.round(signal));
  await rooms.pipeline.idle();
}

/** A node that erased a post, which its FORGET names, and an amend of it, which none does. */
async function createErased(stack: AsyncDisposableStack) {
  const clock = { nowMs: Date.now() };
  const create = async (...peers: readonly TestCore[]) =>
    stack.use(
      await createTestCore({
        peers: peers.map((peer, at) => linkTo(`node-${at}`, () => peer)),
        now: () => clock.nowMs,
      }),
    );
  const erased = await create();
  const send = async (draft: object, signer = alice) => {
    const timestamp = Math.floor(clock.nowMs / 1000);
    const signed = signMessage({ ...draft, timestamp } as MessageDraft, signer);
    assert.equal((await erased.post('/messages', signed.body)).status, 200);
    await erased.rooms.pipeline.idle();
    return signed;
  };
  const permit = (...authorizations: object[]) => ({
    type: 'AGGREGATE',
    content: { key: 'security', content: { authorizations } },
  });
  await send(permit({ address: bob.address }));
  const post = await send({ type: 'POST', content: { type: 'note', content: 1 } });
  const amend = await send({ type: 'POST', content: { type: 'amend', ref: post.itemHash, content: 2 } });
  clock.nowMs += 60_000;
  const revocation = signMessage(
    { ...permit(), timestamp: Math.floor(clock.nowMs / 1000) } as MessageDraft,
    alice,
  );
  clock.nowMs += 60_000;
  const forget = await send({ type: 'FORGET', content: { hashes: [post.itemHash] } }, bob);
  clock.nowMs += ERASE_AFTER_MS;
  await eraseForgotten(erased.rooms.db, clock.nowMs);
  const keep = async (core: TestCore, text: string) => {
    const { peer } = core.rooms.intake;
    await peer.keep(await peer.read([Buffer.from(text)]));
    await core.rooms.pipeline.idle();
  };
  return { create, erased, keep, post, amend, forget, revocation };
}

test('of an amend that went with its post no text is wanted, in whichever order its post, that FORGET and it arrive', async () => {
  await using stack = new AsyncDisposableStack();
  const { create, erased, keep, post, amend, forget } = await createErased(stack);
  assert.deepEqual(await lookAt(erased, amend.itemHash), ['forgotten', 'forgotten', false]);
  const texts = {
    post: erasedText(await rowOf(erased, post.itemHash)),
    amend: erasedText(await rowOf(erased, amend.itemHash)),
    forget: forget.body,
  };
  for (const order of [
    ['post', 'forget', 'amend'],
    ['amend', 'post', 'forget'],
    ['forget', 'amend', 'post'],
  ] as const) {
    const core = await create(erased);
    for (const name of order) await keep(core, texts[name]);
    assert.deepEqual(await lookAt(core, amend.itemHash), ['forgotten', 'forgotten', false], order.join());
    await meet(core);
    assert.deepEqual(await lookAt(core, amend.itemHash), ['forgotten', 'forgotten', false], order.join());
    assert.deepEqual(fingerprintOf(core), fingerprintOf(erased), order.join());
  }
  // It comes again, as it was signed and as what is left of it.
  for (const text of [amend.body, texts.amend]) await keep(erased, text);
  assert.equal((await rowOf(erased, amend.itemHash)).status, 'forgotten');
});

test('it is wanted once the FORGET of its post counts no more, and comes back with it', async () => {
  await using stack = new AsyncDisposableStack();
  const { create, erased, keep, post, amend, revocation } = await createErased(stack);
  const other = await create(erased);
  await meet(other);
  for (const core of [erased, other]) {
    await keep(core, revocation.body);
    assert.deepEqual(await lookAt(core, post.itemHash), ['forgotten', 'wanted', false]);
    assert.deepEqual(await lookAt(core, amend.itemHash), ['forgotten', 'forgotten', false]);
    await keep(core, post.body);
    assert.deepEqual(await lookAt(core, post.itemHash), ['processed', null, true]);
    assert.deepEqual(await lookAt(core, amend.itemHash), ['forgotten', 'wanted', false]);
    await keep(core, amend.body);
    assert.deepEqual(await lookAt(core, amend.itemHash), ['processed', null, true]);
  }
  assert.deepEqual(fingerprintOf(other), fingerprintOf(erased));
});
