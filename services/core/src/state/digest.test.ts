import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { recomputeInstancesDigest, recomputeMessagesDigest } from '@skerry/client';
import { nodeIdOf } from '@skerry/protocol';
import { createTestCore, instanceContent, signers, type TestCore } from '../testing/core.ts';

const OPTIONS = { max: 1_000 };
const SCHEDULERS = new Set([signers.scheduler.address]);

/** Stands before a core node, and does something before it passes a question on. */
async function startBefore(target: string, path: string, act: () => Promise<void>) {
  let isDone = false;
  const server = createServer(async (request, response) => {
    if (!isDone && request.url!.includes(path)) {
      isDone = true;
      await act();
    }
    const inner = await fetch(`${target}${request.url}`);
    response.writeHead(inner.status, { 'content-type': 'application/json' }).end(await inner.text());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
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
});
