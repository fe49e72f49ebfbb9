import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { type MessageDraft, type Signer, signMessage } from '@skerry/client';
import { sha256Hex } from '@skerry/protocol';
import { uploadCall } from '../../testing/contract/case.ts';
import { createTestCore, instanceContent, signers, type TestCore } from '../../testing/core.ts';

const T0 = 1_700_000_000;
const HORIZON_MS = 60_000;
const CID = `Qm${'a'.repeat(44)}`;
const { alice } = signers;
let counter = 0;
const signed = (type: string, content: unknown, at = 1, signer: Signer = alice) =>
  signMessage({ type, content, timestamp: T0 + at, nonce: `${counter++}` } as MessageDraft, signer);

describe('messages that lack something', () => {
  let core: TestCore;
  let nowMs = Date.now();
  before(async () => {
    core = await createTestCore({ now: () => nowMs, pendingHorizonMs: HORIZON_MS });
  });
  after(() => core[Symbol.asyncDispose]());

  const put = async (one: { body: string }) => {
    const { status, body } = await core.post('/messages', one.body);
    return [status, body.code ?? body.reason?.code ?? null];
  };
  const statusOf = async ({ itemHash }: { itemHash: string }) => {
    await core.rooms.pipeline.idle();
    const { body } = await core.get(`/messages/${itemHash}/status`);
    return [body.status, body.reason?.code ?? null];
  };
  const upload = async (bytes: Buffer) => {
    const { path, headers, body } = uploadCall(bytes);
    const { status } = await core.post(path.replace('/api/v0', ''), body!, { ...headers });
    assert.equal(status, 200);
  };
  const listed = async (hash: string) => (await core.get(`/messages?hashes=${hash}`)).body.pagination.total;

  test('amends: the latest by time counts, one may come before its post, and none amends an amend', async () => {
    const post = signed('POST', { type: 'note', content: { v: 0 }, ref: 'thread' });
    const amend = (at: number, ref = post.itemHash) =>
      signed('POST', { type: 'amend', ref, content: { v: at } }, at);
    const [late, early] = [amend(9), amend(5)];
    assert.deepEqual(await put(late), [202, 'AMEND_TARGET_NOT_FOUND']);
    assert.equal(await listed(late.itemHash), 0);
    assert.deepEqual(await put(post), [200, null]);
    assert.deepEqual(await statusOf(late), ['processed', null]);
    assert.deepEqual(await put(early), [200, null]);
    const { posts } = (await core.get(`/posts.json?hashes=${post.itemHash}`)).body;
    assert.deepEqual(
      [posts[0].content, posts[0].item_hash, posts[0].original_item_hash, posts[0].type, posts[0].ref],
      [{ v: 9 }, late.itemHash, post.itemHash, 'amend', 'thread'],
    );
    assert.equal((await core.get('/posts.json?refs=thread&types=note')).body.pagination_total, 1);
    assert.deepEqual(await put(amend(10, late.itemHash)), [400, 'AMEND_OF_AMEND']);
    assert.deepEqual(await put(signed('POST', { type: 'amend', ref: 'thread' })), [
      202,
      'AMEND_TARGET_NOT_FOUND',
    ]);
    const strangers = signed('POST', { type: 'amend', ref: post.itemHash, content: {} }, 11, signers.bob);
    assert.deepEqual(await put(strangers), [403, 'NOT_PERMITTED']);
  });

  test('a STORE before its file, and a program before its code, are in force when it comes', async () => {
    const bytes = randomBytes(100);
    const hash = sha256Hex(bytes);
    const store = signed('STORE', { item_type: 'storage', item_hash: hash });
    const program = signed('PROGRAM', { name: 'p', code: hash, runtime: 'nodejs', memory: 128, timeout: 5 });
    const byMessage = signed('PROGRAM', {
      ...{ name: 'q', runtime: 'nodejs', memory: 128, timeout: 5 },
      code: store.itemHash,
    });
    for (const one of [store, program, byMessage]) assert.deepEqual(await put(one), [202, 'FILE_NOT_FOUND']);
    assert.equal((await core.post(`/run/${program.itemHash}`, '')).body.code, 'PROGRAM_NOT_FOUND');
    const { body } = await core.get(`/messages/${store.itemHash}`);
    assert.deepEqual([body.status, body.messages.length, body.message], ['pending', 1, undefined]);
    await upload(bytes);
    for (const one of [store, program, byMessage])
      assert.deepEqual(await statusOf(one), ['processed', null], one.body.slice(0, 200));
    const run = await core.post(`/run/${program.itemHash}`, '{"variables":{}}');
    assert.deepEqual([run.status, run.body.code], [503, 'NO_RUNNER']);
    const pins = await core.rooms.db.selectFrom('file_pins').selectAll().execute();
    const kept = ({ itemHash }: { itemHash: string }) =>
      pins.flatMap((pin) => (pin.message_hash === itemHash ? [pin.file_hash] : []));
    assert.deepEqual([program, store, byMessage].map(kept), [[hash], [hash], [store.itemHash]]);
    await put(signed('FORGET', { hashes: [store.itemHash] }));
    assert.deepEqual(await statusOf(program), ['processed', null]);
    assert.deepEqual(await statusOf(byMessage), ['pending', 'FILE_NOT_FOUND']);
  });

  test('a change of an instance may come before it', async () => {
    const machine = signed('INSTANCE', instanceContent);
    const rename = signed('INSTANCE_UPDATE', { instance_id: machine.itemHash, name: 'renamed' }, 2);
    assert.deepEqual(await put(rename), [202, 'INSTANCE_NOT_FOUND']);
    await put(machine);
    assert.deepEqual(await statusOf(rename), ['processed', null]);
    assert.equal((await core.get(`/instances/${machine.itemHash}`)).body.name, 'renamed');
    const post = signed('POST', { type: 'note' });
    await put(post);
    assert.deepEqual(await put(signed('INSTANCE_CONTROL', { instance_id: post.itemHash, action: 'stop' })), [
      404,
      'INSTANCE_NOT_FOUND',
    ]);
  });

  test('nothing waits for ever: at the horizon it is rejected with its reason, and what comes later revives it', async () => {
    const bytes = randomBytes(100);
    const pin = signed('IPFS_PIN', { hash: CID });
    const store = signed('STORE', { item_type: 'storage', item_hash: sha256Hex(bytes) });
    assert.deepEqual(
      [await put(pin), await put(store)],
      [
        [202, 'FILE_NOT_FOUND'],
        [202, 'FILE_NOT_FOUND'],
      ],
    );
    nowMs += HORIZON_MS - 1;
    await core.rooms.pipeline.expire();
    assert.deepEqual(await statusOf(pin), ['pending', 'FILE_NOT_FOUND']);
    nowMs += 1;
    await core.rooms.pipeline.expire();
    assert.deepEqual(await statusOf(pin), ['rejected', 'FILE_NOT_FOUND']);
    assert.deepEqual(await statusOf(store), ['rejected', 'FILE_NOT_FOUND']);
    const { body } = await core.get(`/messages/${store.itemHash}`);
    assert.deepEqual([body.error_code, body.details.errors.length], [4, 1]);
    assert.deepEqual(await put(store), [404, 'FILE_NOT_FOUND'], 'sent again, it still lacks it');
    await upload(bytes);
    assert.deepEqual(await statusOf(store), ['processed', null]);
    assert.equal(await listed(store.itemHash), 1);
    const { rows } = await core.rooms.db
      .selectFrom('messages')
      .select(({ fn }) => fn.countAll<number>().as('pending'))
      .where('status', '=', 'pending')
      .where('decide_by_ms', '<=', nowMs)
      .execute()
      .then((found) => ({ rows: found }));
    assert.equal(rows[0]!.pending, 0);
  });
});
