import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import {
  buildNetworkMessage,
  createSigner,
  type MessageDraft,
  type Signer,
  signMessage,
} from '@skerry/client';
import { createTestCore, type TestCore } from '../testing/core.ts';
import { ERASE_AFTER_MS, eraseForgotten } from './erase.ts';

const T0 = 1_700_000_000;
const FORMS = ['envelope', 'network'] as const;

/** A text that its owner forgot and this node erased, and that somebody kept and sends. */
describe('a text that was erased', () => {
  let core: TestCore;
  let nowMs = T0 * 1000;
  let count = 0;
  let [owner, delegate]: Signer[] = [];
  before(async () => {
    core = await createTestCore({ now: () => nowMs });
  });
  beforeEach(() => {
    nowMs = T0 * 1000;
    [owner, delegate] = [8, 9].map((digit) =>
      createSigner(`0x${(count++).toString(16).padStart(64, `${digit}`)}`),
    );
  });
  after(() => core[Symbol.asyncDispose]());

  const seconds = () => Math.floor(nowMs / 1000);
  const sign = (form: (typeof FORMS)[number], draft: object, signer: Signer) =>
    form === 'envelope'
      ? signMessage({ ...draft, timestamp: seconds() } as MessageDraft, signer)
      : buildNetworkMessage({ ...draft, time: seconds() } as never, signer);
  const put = async (body: string) => {
    assert.equal((await core.post('/messages', body)).status, 200);
    await core.rooms.pipeline.idle();
  };
  async function keep(...frames: string[]): Promise<void> {
    const { peer } = core.rooms.intake;
    await peer.keep(await peer.read(frames.map((frame) => Buffer.from(frame))));
    await core.rooms.pipeline.idle();
  }
  const permit = (...delegates: Signer[]) => {
    const authorizations = delegates.map(({ address }) => ({ address }));
    const content = { key: 'security', content: { authorizations } };
    return put(sign('envelope', { type: 'AGGREGATE', content }, owner!).body);
  };
  const rowOf = (hash: string) =>
    core.rooms.db.selectFrom('messages').selectAll().where('item_hash', '=', hash).executeTakeFirstOrThrow();
  /** As one node passes it on to another. */
  function frameOf(body: string, notedMs: number): string {
    const { message, signature, address } = JSON.parse(body);
    return JSON.stringify({ message, signature, address, noted_ms: notedMs });
  }

  for (const form of FORMS)
    test(`stays so where its sender turned out not to have been permitted to say it, whoever sends it again (${form})`, async () => {
      await permit(delegate!);
      nowMs += 1_000;
      const content = { type: 'note', content: 'of somebody', address: owner!.address };
      const said = sign(form, { type: 'POST', content }, delegate!);
      await put(said.body);
      await put(sign('envelope', { type: 'FORGET', content: { hashes: [said.itemHash] } }, owner!).body);
      await eraseForgotten(core.rooms.db, nowMs + ERASE_AFTER_MS);
      // What was done in the last ten minutes before is revoked as well.
      nowMs += 60_000;
      await permit();
      const before = await rowOf(said.itemHash);
      assert.deepEqual([before.status, before.erased, before.source_text], ['rejected', 'forgotten', null]);
      await keep(frameOf(said.body, nowMs));
      await core.post('/messages', said.body);
      await core.rooms.pipeline.idle();
      assert.deepEqual(await rowOf(said.itemHash), before);
    });

  for (const form of FORMS)
    test(`stays so where it amended a post that was forgotten, whatever earlier date a peer sends it with (${form})`, async () => {
      const post = sign('envelope', { type: 'POST', content: { type: 'note', content: 'a' } }, owner!);
      const content = { type: 'amend', ref: post.itemHash, content: 'of somebody' };
      const amend = sign(form, { type: 'POST', content }, owner!);
      // It came an hour late.
      nowMs += 3_600_000;
      for (const { body } of [post, amend]) await put(body);
      await put(sign('envelope', { type: 'FORGET', content: { hashes: [post.itemHash] } }, owner!).body);
      await eraseForgotten(core.rooms.db, nowMs + ERASE_AFTER_MS);
      const before = await rowOf(amend.itemHash);
      assert.deepEqual([before.status, before.erased, before.source_text], ['forgotten', 'forgotten', null]);
      await keep(frameOf(amend.body, nowMs - 60_000));
      const { source_text: text, content: kept, erased } = await rowOf(amend.itemHash);
      assert.deepEqual([text, kept, erased], [null, null, 'forgotten']);
    });
});
