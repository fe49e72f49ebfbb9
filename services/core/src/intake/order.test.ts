import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type MessageDraft, type Signer, signMessage } from '@skerry/client';
import fc from 'fast-check';
import { arrive, lookAfter, lookAt, type Sent } from '../testing/arrivals.ts';
import { clearMessages } from '../testing/clear.ts';
import { createTestCore, instanceContent, signers, type TestCore } from '../testing/core.ts';
import { compareOrders } from '../testing/orders.ts';

/**
 * Any order of arrival, any duplication and any restart end in the same state (docs/decisions.md 3): every sequence below
 * is a world of messages that grant, revoke, forget, amend and change each other, sent in many orders.
 */

const { alice, bob, scheduler, node, otherNode } = signers;
const T0 = 1_700_000_000;
/** Longer than a revocation reaches back. */
const STEP_SECONDS = 1_000;

const signed = (signer: Signer, type: string, content: unknown, at: number, channel = 'order'): Sent =>
  signMessage(
    { type, content, channel, timestamp: T0 + at * STEP_SECONDS, nonce: `${at}` } as MessageDraft,
    signer,
  );

const security = (at: number, ...granted: { address: string }[]) =>
  signed(alice, 'AGGREGATE', { key: 'security', content: { authorizations: granted } }, at);
const aggregate = (signer: Signer, at: number, content: object, address?: string) =>
  signed(signer, 'AGGREGATE', { key: 'profile', content, ...(address ? { address } : {}) }, at);
const allocation = (instanceId: string, to: Signer, at: number) =>
  signed(
    scheduler,
    'POST',
    {
      type: 'net-allocation',
      content: {
        instance_id: instanceId,
        node_id: 'ab'.repeat(32),
        node_address: to.address,
        ipv6: 'fd00::1',
        reason: null,
        decided_at_ms: at,
      },
    },
    at,
  );
const status = (by: Signer, instanceId: string, phase: string, at: number) =>
  signed(
    by,
    'POST',
    {
      type: 'net-instance-status',
      content: { instance_id: instanceId, phase, reason: null, observed_at_ms: at, restart_id: null },
    },
    at,
  );

/** Every kind of influence that one message has on another. */
function createWorld(): Sent[] {
  const note = signed(alice, 'POST', { type: 'note', content: { text: 'first' }, tags: ['a', 'b'] }, 10);
  const delegatedNote = signed(bob, 'POST', { type: 'note', address: alice.address, content: {} }, 50);
  const instance = signed(alice, 'INSTANCE', instanceContent, 20);
  const id = instance.itemHash;
  const element = aggregate(alice, 31, { name: 'Alice', city: 'Oban' });
  const amend = signed(alice, 'POST', { type: 'amend', ref: note.itemHash, content: { text: 'second' } }, 12);
  const forgetGrant = security(60, { address: bob.address });
  return [
    note,
    delegatedNote,
    instance,
    element,
    amend,
    // Bob may speak for Alice between 40 and 45, and again from 60 on, until that grant is forgotten.
    security(40, { address: bob.address }),
    security(45),
    forgetGrant,
    aggregate(alice, 30, { name: 'Al', age: 1 }),
    aggregate(bob, 42, { name: 'set by bob' }, alice.address),
    aggregate(bob, 47, { name: 'too late', more: 1 }, alice.address),
    aggregate(bob, 62, { name: 'later', age: null }, alice.address),
    signed(
      bob,
      'POST',
      { type: 'amend', ref: note.itemHash, address: alice.address, content: { by: 'bob' } },
      43,
    ),
    signed(alice, 'INSTANCE_UPDATE', { instance_id: id, name: 'renamed' }, 21),
    signed(bob, 'INSTANCE_CONTROL', { instance_id: id, action: 'stop' }, 44),
    signed(bob, 'INSTANCE_CONTROL', { instance_id: id, action: 'restart' }, 48),
    allocation(id, node, 22),
    allocation(id, otherNode, 24),
    status(node, id, 'running', 23),
    status(otherNode, id, 'failed', 25),
    signed(alice, 'FORGET', { hashes: [element.itemHash] }, 70),
    signed(bob, 'FORGET', { hashes: [amend.itemHash], address: alice.address }, 44),
    signed(bob, 'FORGET', { hashes: [note.itemHash], address: alice.address }, 49),
    signed(
      alice,
      'PROGRAM',
      { name: 'p', code: 'print(1)', runtime: 'python3', memory: 128, timeout: 5 },
      33,
    ),
  ];
}

describe('order does not matter', () => {
  let core: TestCore;
  let expected: Awaited<ReturnType<typeof lookAt>>;
  const world = createWorld();
  const extra = signed(alice, 'FORGET', { hashes: [world[7]!.itemHash] }, 90);
  const all = [...world, extra];
  before(async () => {
    core = await createTestCore();
    for (const one of all) await arrive(core, [one]);
    expected = await lookAt(core);
  });
  after(() => core[Symbol.asyncDispose]());

  test('the world ends as its messages say', async () => {
    const statuses = new Map(expected.messages.map(({ item_hash, status }) => [item_hash, status]));
    const statusOf = (index: number) => statuses.get(all[index]!.itemHash);
    assert.equal(statusOf(1), 'rejected', 'a note in the name of Alice while nothing was granted');
    assert.equal(statusOf(3), 'forgotten', 'an element that its owner forgot');
    assert.equal(statusOf(4), 'forgotten', 'an amend that a delegate forgot');
    assert.equal(statusOf(9), 'processed', 'written while it was granted');
    assert.equal(statusOf(10), 'rejected', 'written after it was revoked');
    assert.equal(statusOf(11), 'rejected', 'granted by an element that was forgotten');
    assert.equal(statusOf(15), 'rejected', 'a restart by somebody who may no more');
    const { body: profile } = await core.get(`/aggregates/${alice.address}/profile`);
    assert.deepEqual(profile.content, { name: 'set by bob', age: 1 });
    const { body: instance } = await core.get(`/instances/${all[2]!.itemHash}`);
    assert.deepEqual(
      [instance.name, instance.desired, instance.phase, instance.restart_id],
      ['renamed', 'stopped', 'failed', null],
    );
    const { body: posts } = await core.get(`/posts.json?hashes=${all[0]!.itemHash}`);
    assert.deepEqual(posts.posts[0].content, { by: 'bob' });
    const { total } = (await core.get('/messages')).body.pagination;
    assert.equal(total, [...statuses.values()].filter((status) => status === 'processed').length);
  });

  test('in any order, in any batches, with any duplicates', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.shuffledSubarray([...all.keys()], { minLength: all.length }),
        fc.array(fc.nat(all.length - 1), { maxLength: 8 }),
        fc.integer({ min: 1, max: all.length }),
        async (order, again, batch) => {
          const sequence = [...order, ...again];
          const batches = Array.from({ length: Math.ceil(sequence.length / batch) }, (_, at) =>
            sequence.slice(at * batch, (at + 1) * batch),
          );
          assert.deepEqual(await lookAfter(core, all, batches), expected);
        },
      ),
      { numRuns: 12 },
    );
  });

  test('a post that comes back while its amends stay is amended again', async () => {
    // Of the first ones Bob's FORGET of the note holds, until it comes again beside what revoked his permission.
    const batches = [
      [11, 24, 4, 1, 19, 14, 20, 21, 9, 0, 8, 22, 10, 13, 17, 12, 15, 16, 5],
      [18, 3, 2, 6, 7, 23, 22],
    ];
    assert.deepEqual(await lookAfter(core, all, batches), expected);
  });

  test('what was decided before the rest was known is decided again: every prefix, then everything', async () => {
    await clearMessages(core);
    for (const one of [...all].reverse()) {
      await arrive(core, [one]);
      await core.rooms.pipeline.idle();
    }
    assert.deepEqual(await lookAt(core), expected);
  });

  test('nor does it in worlds that dice made', async () => {
    for (const seed of [1, 2, 3, 4]) await compareOrders(core, seed, 3);
  });
});
