import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type MessageDraft, type Signer, signMessage } from '@skerry/client';
import { verifySubmission } from '@skerry/protocol';
import { sql } from 'kysely';
import { createTestCore, instanceContent, signers, type TestCore } from '../../testing/core.ts';
import { acceptMessage } from '../accept.ts';
import { type StoredMessage, verifiedOf } from '../stored.ts';
import { instanceEffect } from './instances.ts';

const { alice, scheduler, node } = signers;
const T0 = 1_700_000_000;

const signed = (signer: Signer, type: string, content: unknown, at: number, nonce = at) =>
  signMessage({ type, content, timestamp: T0 + at, nonce: `${nonce}` } as MessageDraft, signer);
const status = (instanceId: string, observedAtMs: number) => ({
  type: 'net-instance-status',
  content: {
    ...{ instance_id: instanceId, phase: 'running', reason: null },
    ...{ observed_at_ms: observedAtMs, restart_id: null },
  },
});
const allocation = (instanceId: string) => ({
  type: 'net-allocation',
  content: {
    ...{ instance_id: instanceId, node_id: 'ab'.repeat(32), node_address: node.address, ipv6: 'fd00::1' },
    ...{ reason: null, decided_at_ms: 5 },
  },
});

describe('instances of which strangers say much', () => {
  let core: TestCore;
  before(async () => {
    core = await createTestCore();
  });
  after(() => core[Symbol.asyncDispose]());
  const put = async ({ body }: { body: string }) => (await core.post('/messages', body)).status;

  test('no number that a node says keeps an instance from being placed', async () => {
    const machine = signed(alice, 'INSTANCE', instanceContent, 1);
    assert.equal(await put(machine), 200);
    const refused = signed(node, 'POST', status(machine.itemHash, 1e300), 2);
    assert.equal(await put(refused), 400);
    // As a node keeps it that took any number.
    const [early, late] = [10, 20].map((ms) => signed(node, 'POST', status(machine.itemHash, ms), 2, ms));
    for (const one of [early!, late!]) assert.equal(await put(one), 200);
    await sql`update messages set content = jsonb_set(content, '{content,observed_at_ms}', '1e300')
      where item_hash = ${late!.itemHash}`.execute(core.rooms.db);
    assert.equal(await put(signed(scheduler, 'POST', allocation(machine.itemHash), 3)), 200);
    const { body: instance } = await core.get(`/instances/${machine.itemHash}`);
    assert.deepEqual([instance.node_address, instance.phase], [node.address, 'running']);
  });

  test('of many changes of one instance the last one counts, however they are read', async () => {
    const machine = signed(alice, 'INSTANCE', instanceContent, 1, 99);
    const updates = Array.from({ length: 450 }, (_, n) =>
      // Several at one time.
      signed(
        alice,
        'INSTANCE_UPDATE',
        { instance_id: machine.itemHash, name: `name ${n}` },
        10 + Math.floor(n / 90),
        n,
      ),
    );
    const frames = [machine, ...updates].map(({ body }) => ({
      accepted: acceptMessage(verifySubmission(body, Math.floor(Date.now() / 1000))),
    }));
    await core.rooms.intake.peer.keep(frames);
    const last = updates.slice(-90).toSorted((a, b) => (a.itemHash < b.itemHash ? 1 : -1))[0]!;
    const expected = `name ${updates.indexOf(last)}`;
    const nameOf = async () => (await core.get(`/instances/${machine.itemHash}`)).body.name;
    assert.equal(await nameOf(), expected);
    assert.equal(await put(signed(scheduler, 'POST', allocation(machine.itemHash), 30)), 200);
    assert.equal(await nameOf(), expected);
    const { rows } = await sql<{ stamps: object }>`
      select stamps from instances where instance_id = ${machine.itemHash}`.execute(core.rooms.db);
    assert.deepEqual((rows[0]!.stamps as { name: unknown }).name, [T0 + 14, last.itemHash]);

    // What is decided is not looked for any further.
    let looks = 0;
    const undo = { data: { instanceId: machine.itemHash, fold: { stage: 'change' } }, undo: true };
    await core.rooms.db.transaction().execute((trx) => {
      const changesOf = (row: StoredMessage) => {
        looks++;
        return acceptMessage(verifiedOf(row)).changes;
      };
      return instanceEffect.write([undo as never], {
        trx,
        changesOf,
        schedulers: new Set(),
        events: [],
      } as never);
    });
    assert.ok(looks < 210, `${looks} messages were read`);
    assert.equal(await nameOf(), expected);
  });
});
