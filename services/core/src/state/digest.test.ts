import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  buildNetworkMessage,
  CoreClient,
  recomputeDerivedDigests,
  recomputeInstancesDigest,
  recomputeMessagesDigest,
} from '@skerry/client';
import { serving } from '@skerry/kit/testing/serving';
import { DERIVED_KINDS, type DerivedTrust, nodeIdOf, sha256Hex } from '@skerry/protocol';
import { sql } from 'kysely';
import { createTestCore, instanceContent, signers, type TestCore } from '../testing/core.ts';

const OPTIONS = { max: 1_000 };
const SCHEDULERS = new Set([signers.scheduler.address]);
const TRUST: DerivedTrust = {
  creditPublishers: new Set([signers.credit.address]),
  scoringPublishers: new Set([signers.monitor.address]),
};
const NOBODY: DerivedTrust = { creditPublishers: new Set(), scoringPublishers: new Set() };

const PROGRAM = { name: 'a', code: 'x', runtime: 'nodejs', memory: 64, timeout: 1 };

/** Stands before a core node, and does something before it passes a question on. */
function startBefore(target: string, path: string, act: () => Promise<void>) {
  let isDone = false;
  return serving(async (request, response) => {
    if (!isDone && request.url!.includes(path)) {
      isDone = true;
      await act();
    }
    const inner = await fetch(`${target}${request.url}`);
    response.writeHead(inner.status, { 'content-type': 'application/json' }).end(await inner.text());
  });
}

describe('digests that anybody can compute', () => {
  let core: TestCore;
  let coreUrl: string;
  before(async () => {
    core = await createTestCore();
    coreUrl = await core.listen();
  });
  after(() => core[Symbol.asyncDispose]());

  const note = async (n: number): Promise<string> =>
    (await core.send(signers.alice, { type: 'POST', content: { type: 'note', content: n } })).body.item_hash;

  async function createMachine(name: string): Promise<string> {
    const content = { ...instanceContent, name };
    const { item_hash: id } = (await core.send(signers.alice, { type: 'INSTANCE', content })).body;
    const allocation = {
      instance_id: id,
      node_id: nodeIdOf(signers.node.address),
      node_address: signers.node.address,
      ipv6: 'fd00:1::1',
      reason: null,
      decided_at_ms: 1,
    };
    await core.send(signers.scheduler, {
      type: 'POST',
      content: { type: 'net-allocation', content: allocation },
    });
    return id;
  }

  test('of messages: in force and forgotten ones, whatever comes while it is computed', async () => {
    const gone = await note(1);
    await note(2);
    await core.send(signers.alice, { type: 'FORGET', content: { hashes: [gone] } });
    // It waits for its target, and counts nowhere.
    await core.send(signers.alice, {
      type: 'POST',
      content: { type: 'amend', ref: 'f'.repeat(64), content: 3 },
    });
    const compared = await recomputeMessagesDigest({ coreUrl }, OPTIONS);
    assert.equal(compared.isSame, true);
    assert.deepEqual(compared.computed, compared.said);
    assert.equal(compared.said.count, 3);

    // Between the node's digest and its list one comes and one goes: that is put back.
    const going = await note(4);
    await using moving = await startBefore(coreUrl, '/messages/hashes', async () => {
      await note(5);
      await core.send(signers.alice, { type: 'FORGET', content: { hashes: [going] } });
    });
    const put = await recomputeMessagesDigest({ coreUrl: moving.url }, OPTIONS);
    assert.deepEqual(put.computed, put.said);
    assert.equal(put.said.count, 4);
    const { messages } = (await core.get('/state/digest')).body;
    const { cursor: _, ...alone } = (await core.get('/state/digest/messages')).body;
    assert.deepEqual(alone, messages);
  });

  test('of messages: one that the list lacks is noticed, and a list that is too long is not compared', async () => {
    const hidden = await note(10);
    await core.rooms.db
      .updateTable('messages')
      .set({ status: 'rejected' })
      .where('item_hash', '=', hidden)
      .execute();
    const compared = await recomputeMessagesDigest({ coreUrl }, OPTIONS);
    assert.equal(compared.isSame, false);
    assert.equal(compared.computed.count, compared.said.count - 1);
    await core.rooms.db
      .updateTable('messages')
      .set({ status: 'processed' })
      .where('item_hash', '=', hidden)
      .execute();
    const cut = await recomputeMessagesDigest({ coreUrl }, { max: 1 });
    assert.deepEqual([cut.isCut, cut.isSame], [true, false]);
  });

  test('of instances: each is folded anew, and one that its messages do not make is named', async () => {
    const [first] = [await createMachine('one'), await createMachine('two')];
    const compared = await recomputeInstancesDigest({ coreUrl }, SCHEDULERS, OPTIONS);
    assert.deepEqual(compared.computed, compared.said);
    assert.deepEqual(
      { isSame: compared.isSame, count: compared.said.count, verified: compared.verified },
      { isSame: true, count: 2, verified: 4 },
    );
    assert.deepEqual(compared.refused, []);
    await core.rooms.db.updateTable('instances').set({ cpu: 7 }).where('instance_id', '=', first).execute();
    const lie = await recomputeInstancesDigest({ coreUrl }, SCHEDULERS, OPTIONS);
    assert.deepEqual(
      lie.refused.map(({ itemHash, message }) => [itemHash, message]),
      [[first, 'cpu is 7, signed was 1']],
    );
    const others = await recomputeInstancesDigest({ coreUrl }, new Set(), OPTIONS);
    assert.equal(others.refused.length, 2, 'whom the reader does not believe places nothing');
  });

  const sendPost = async (signer: Parameters<TestCore['send']>[0], channel: string, content: object) =>
    (await core.send(signer, { type: 'POST', channel, content })).body.item_hash as string;
  const grant = (ref: string) => ({
    type: 'net-credit-distribution',
    content: { distribution: { credits: [{ address: signers.alice.address, amount: 5, ref }] } },
  });
  const measured = { type: 'net-scoring-metrics', content: { metrics: { ccn: [], crn: [] } } };

  /** Something of every kind, and what must count nowhere. */
  async function fillEveryKind(): Promise<void> {
    const { alice, bob, credit, monitor } = signers;
    const post = await note(20);
    for (const content of [21, 22])
      await core.send(alice, { type: 'POST', content: { type: 'amend', ref: post, content } });
    for (const fields of [{ a: 1, 'b"\\\u2028': 2 }, { a: 3 }, {}])
      await core.send(alice, { type: 'AGGREGATE', content: { key: 'k "é', content: fields } });
    for (const ref of ['one', 'one', 'two']) await sendPost(credit, 'net-credit', grant(ref));
    await sendPost(bob, 'net-credit', grant('three'));
    await sendPost(monitor, 'net-scoring', measured);
    // In the network form a content has more fields.
    const network = { type: 'POST', channel: 'net-scoring', content: measured };
    await core.post('/messages', buildNetworkMessage(network, monitor).body);
    await sendPost(monitor, 'elsewhere', measured);
    await sendPost(bob, 'net-scoring', measured);
    const file = new Blob(['kept']);
    await new CoreClient({ url: coreUrl, signer: alice }).storeFile(file, 'kept', sha256Hex('kept'));
    await core.send(alice, { type: 'PROGRAM', content: PROGRAM });
  }

  test('of what follows from messages: each kind is folded anew out of what was signed', async () => {
    await fillEveryKind();
    const { kinds, refused, verified } = await recomputeDerivedDigests({ coreUrl }, TRUST, OPTIONS);
    for (const kind of DERIVED_KINDS) assert.deepEqual(kinds[kind].computed, kinds[kind].said, kind);
    assert.deepEqual(refused, []);
    assert.ok(verified >= 13);
    const { posts, ...counts } = Object.fromEntries(
      DERIVED_KINDS.map((kind) => [kind, kinds[kind].said.count]),
    );
    assert.deepEqual(counts, { aggregates: 2, credits: 2, files: 1, measurements: 2, programs: 1 });
    assert.ok(posts! >= 8);

    const others = await recomputeDerivedDigests({ coreUrl }, NOBODY, OPTIONS);
    assert.equal(others.kinds.credits.isSame, false, 'whom the reader does not believe gives nothing');
    const cut = await recomputeDerivedDigests({ coreUrl }, TRUST, { max: 1 });
    assert.deepEqual([cut.kinds.posts.isCut, cut.kinds.posts.isSame], [true, false]);
    assert.equal(cut.kinds.files.isSame, true);
  });

  test('of what follows from messages: what comes meanwhile is taken out, and what goes is read anew', async () => {
    const going = await note(30);
    const read = async () => (await core.get('/state/digest/derived')).body.kinds.posts.count;
    const before = await read();
    await using moving = await startBefore(coreUrl, 'msgTypes=POST', async () => {
      await note(31);
      await core.send(signers.alice, { type: 'AGGREGATE', content: { key: 'later', content: { a: 1 } } });
    });
    const came = await recomputeDerivedDigests({ coreUrl: moving.url }, TRUST, OPTIONS);
    for (const kind of DERIVED_KINDS)
      assert.deepEqual(came.kinds[kind].computed, came.kinds[kind].said, kind);
    assert.equal(came.kinds.posts.said.count, before);
    await using leaving = await startBefore(coreUrl, 'msgTypes=POST', async () => {
      await core.send(signers.alice, { type: 'FORGET', content: { hashes: [going] } });
    });
    const went = await recomputeDerivedDigests({ coreUrl: leaving.url }, TRUST, OPTIONS);
    assert.equal(went.kinds.posts.isSame, true);
    assert.equal(went.kinds.posts.said.count, before);
  });

  test('of what follows from messages: a table that does not follow from them is noticed, kind by kind', async () => {
    const { db } = core.rooms;
    const lies: Readonly<Record<string, () => Promise<unknown>>> = {
      posts: () =>
        db
          .updateTable('amended_posts')
          .set({ latest_hash: '0'.repeat(64) })
          .execute(),
      aggregates: () =>
        db
          .updateTable('aggregate_entries')
          .set({ item_hash: '0'.repeat(64) })
          .execute(),
      credits: () => db.updateTable('credit_entries').set({ nano: '1' }).execute(),
      files: () => db.deleteFrom('file_pins').execute(),
      measurements: () => sql`update metrics_messages set owner = 'x'`.execute(db),
      programs: () => db.updateTable('programs').set({ owner: 'x' }).execute(),
    };
    for (const [kind, lie] of Object.entries(lies)) {
      await lie();
      // A table that is written past the node leaves its mark as it was: a message moves it.
      await note(40 + Object.keys(lies).indexOf(kind));
      const { kinds } = await recomputeDerivedDigests({ coreUrl }, TRUST, OPTIONS);
      const wrong = DERIVED_KINDS.filter((one) => !kinds[one].isSame);
      assert.ok(wrong.includes(kind as (typeof DERIVED_KINDS)[number]), `${kind}: ${wrong}`);
    }
  });
});
