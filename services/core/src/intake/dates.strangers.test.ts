import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { createSigner, type MessageDraft, type Signer, signMessage } from '@skerry/client';
import {
  authorizationsAt,
  effectiveTime,
  findRefusal,
  isAuthorized,
  LIMITS,
  type SecurityElement,
  verifySubmission,
} from '@skerry/protocol';
import fc from 'fast-check';
import { digestState } from '../state/digest.ts';
import { clearMessages } from '../testing/clear.ts';
import { createTestCore, instanceContent, signers, type TestCore } from '../testing/core.ts';
import { acceptMessage } from './accept.ts';

const { alice, bob } = signers;
/** When the node is, in the tests of one message after another. */
const T = 1_700_000_000;

describe('a delegate whose permission was revoked', () => {
  let core: TestCore;
  let owner: Signer;
  let nowMs = T * 1000;
  let count = 1;
  before(async () => {
    core = await createTestCore({ now: () => nowMs });
  });
  beforeEach(() => {
    owner = createSigner(`0x${(count++).toString(16).padStart(64, '7')}`);
  });
  after(() => core[Symbol.asyncDispose]());

  /** @param at when it arrives; @param date what it says, by default the same */
  const send = (at: number, by: Signer, draft: Omit<MessageDraft, 'timestamp'>, date = at) => {
    nowMs = at * 1000;
    return core.send(by, { ...draft, timestamp: date, nonce: `${count++}` });
  };
  const security = (at: number, ...delegates: Signer[]) => {
    const authorizations = delegates.map(({ address }) => ({ address }));
    const content = { key: 'security', content: { authorizations } };
    return send(at, owner, { type: 'AGGREGATE', content });
  };
  const forget = (hash: string) => ({ type: 'FORGET', content: { hashes: [hash], address: owner.address } });
  const inName = (type: string, content: object) => ({
    type,
    content: { ...content, address: owner.address },
  });
  const statusOf = async (hash: string) => (await core.get(`/messages/${hash}/status`)).body.status;

  test('H1: dates nothing back: a FORGET, an update, a control, an amend, a POST, an INSTANCE and an AGGREGATE are refused', async () => {
    await security(T - 2_000, bob);
    await security(T - 900);
    const { body: machine } = await send(T, owner, { type: 'INSTANCE', content: instanceContent });
    const { body: note } = await send(T, owner, { type: 'POST', content: { type: 'note', content: {} } });
    const id = machine.item_hash;
    const acts = [
      forget(id),
      { type: 'INSTANCE_UPDATE', content: { instance_id: id, name: 'bobs' } },
      { type: 'INSTANCE_CONTROL', content: { instance_id: id, action: 'stop' } },
      inName('POST', { type: 'amend', ref: note.item_hash, content: {} }),
      inName('POST', { type: 'note', content: {} }),
      inName('INSTANCE', instanceContent),
      inName('AGGREGATE', { key: 'profile', content: { by: 'bob' } }),
    ];
    for (const date of [0, T - 1_950, T - 950, T - 899, T, T + LIMITS.futureSeconds])
      for (const act of acts) {
        const { status, body } = await send(T + 5, bob, act, date);
        assert.deepEqual([status, body.code], [403, 'NOT_PERMITTED'], `${act.type} dated ${date - T}`);
      }
    await core.rooms.pipeline.idle();
    assert.deepEqual([await statusOf(id), await statusOf(note.item_hash)], ['processed', 'processed']);
    const { body: kept } = await core.get(`/instances/${id}`);
    assert.deepEqual([kept.name, kept.desired], [instanceContent.name, 'running']);
  });

  test('H1: the refusal says which time counted', async () => {
    await security(T - 2_000, bob);
    await security(T - 900);
    const { body: machine } = await send(T, owner, { type: 'INSTANCE', content: instanceContent });
    const late = await send(T + 5, bob, forget(machine.item_hash), T - 950);
    assert.match(
      late.body.error,
      /at 2023-11-14T22:13:25\.000Z, when a core node first recorded the message/,
    );
    await security(T + 10, bob);
    await security(T + 1_000);
    const soon = await send(T + 1_001, bob, forget(machine.item_hash), T + 900);
    assert.match(
      soon.body.error,
      /revoked the permission of .* at 2023-11-14T22:30:00\.000Z, within ten minutes/,
    );
    assert.equal(await statusOf(machine.item_hash), 'processed');
  });

  test('H1: what a delegate did in time stays, and what it did in the last ten minutes is taken back whole', async () => {
    await security(T, bob);
    const { body: note } = await send(T, owner, { type: 'POST', content: { type: 'note', content: {} } });
    const { body: old } = await send(T + 10, bob, inName('POST', { type: 'note', content: {} }));
    const { body: gone } = await send(T + 700, bob, forget(note.item_hash));
    assert.equal(await statusOf(note.item_hash), 'forgotten');
    await security(T + 700 + LIMITS.revocationSeconds);
    await core.rooms.pipeline.idle();
    assert.deepEqual(
      [await statusOf(old.item_hash), await statusOf(gone.item_hash), await statusOf(note.item_hash)],
      ['processed', 'rejected', 'processed'],
    );
  });

  test('H1: neither what is dated ahead of a revocation nor what a grant comes to late for gets in', async () => {
    await security(T, bob);
    const ahead = await send(T + 1_000, bob, inName('POST', { type: 'note', content: {} }), T + 1_500);
    assert.equal(ahead.status, 200);
    await security(T + 1_100);
    await core.rooms.pipeline.idle();
    assert.equal(await statusOf(ahead.body.item_hash), 'rejected');
    // A grant that comes late permits nothing before it.
    const { body } = await send(T + 2_000, alice, inName('POST', { type: 'note', content: {} }));
    nowMs = (T + 5_000) * 1000;
    await core.send(owner, {
      type: 'AGGREGATE',
      content: { key: 'security', content: { authorizations: [{ address: alice.address }] } },
      timestamp: T + 1_900,
    });
    await core.rooms.pipeline.idle();
    assert.equal(await statusOf(body.details.item_hash), 'rejected');
  });

  test('H1: a webhook’s request, which no node keeps, is judged by when it comes', async () => {
    const list = (date: number) => {
      const draft = inName('WEBHOOK', { action: 'list' });
      nowMs = (T + 50) * 1000;
      const { body } = signMessage({ ...draft, timestamp: date, nonce: `${count++}` } as MessageDraft, bob);
      return core.post('/webhooks/list', body);
    };
    await security(T - 2_000, bob);
    assert.equal((await list(T + 50)).status, 200);
    await security(T + 40);
    assert.equal((await list(T + 39)).status, 403);
  });
});

describe('dates, in any order of arrival', () => {
  const history = fc.array(
    fc.record({ since: fc.nat(3_000), skew: fc.integer({ min: -700, max: 600 }), granted: fc.boolean() }),
    { maxLength: 6 },
  );
  const act = {
    sender: bob.address,
    chain: 'ETH',
    type: 'POST',
    channel: null,
    contentType: 'note',
    aggregateKey: null,
  };

  test('H1: no date permits an act that came after a revocation that holds', () => {
    fc.assert(
      fc.property(history, fc.nat(3_000), fc.integer({ min: -3_000, max: 600 }), (steps, came, date) => {
        const elements: SecurityElement[] = steps.map(({ since, skew, granted }, at) => ({
          // An element counts from its date on, or, where that is older, from when it came.
          ...{ time: since + Math.min(skew, 0), since, itemHash: `${at}` },
          authorizations: granted ? [{ address: bob.address }] : [],
        }));
        const time = effectiveTime({ time: came + date, notedMs: came * 1000 });
        const isRevokedSince = (from: number) =>
          [from, ...elements.map(({ since }) => since).filter((since) => since > from)].every(
            (at) => !isAuthorized(authorizationsAt(elements, at), act),
          );
        if (isRevokedSince(came)) assert.ok(findRefusal(elements, act, time) !== undefined);
      }),
      { numRuns: 2_000 },
    );
  });

  let core: TestCore;
  before(async () => {
    core = await createTestCore({ now: () => (T + 100_000) * 1000 });
  });
  after(() => core[Symbol.asyncDispose]());

  interface Sent {
    readonly body: string;
    readonly itemHash: string;
    /** When it really came to the first node; undefined: in time. */
    readonly cameAt?: number;
  }
  const signed = (by: Signer, at: number, type: string, content: unknown, cameAt?: number): Sent => ({
    ...signMessage({ type, content, timestamp: T + at, nonce: `${at}` } as MessageDraft, by),
    ...(cameAt === undefined ? {} : { cameAt: T + cameAt }),
  });
  const security = (at: number, granted: readonly Signer[], cameAt?: number) => {
    const content = { authorizations: granted.map(({ address }) => ({ address })) };
    return signed(alice, at, 'AGGREGATE', { key: 'security', content }, cameAt);
  };
  const { address } = alice;
  const machine = signed(alice, 5_000, 'INSTANCE', instanceContent);
  const note = signed(alice, 100, 'POST', { type: 'note', content: {} });
  const forgetting = { hashes: [machine.itemHash], address };
  const inTime = signed(bob, 1_100, 'POST', { type: 'note', address, content: {} });
  const stopped = { instance_id: machine.itemHash, action: 'stop' };
  /** Bob may act from 1,000 to 4,000; what comes of his after that came at 6,000 or later. */
  const world: readonly Sent[] = [
    ...[machine, note, inTime, security(1_000, [bob]), security(4_000, []), security(3_000, [bob], 9_000)],
    signed(bob, 3_000, 'POST', { type: 'amend', ref: note.itemHash, address, content: {} }),
    signed(bob, 0, 'FORGET', forgetting, 6_000),
    signed(bob, 2_000, 'FORGET', forgetting, 6_000),
    signed(bob, 3_900, 'FORGET', forgetting),
    signed(bob, 3_500, 'INSTANCE', { ...instanceContent, address }, 6_000),
    signed(bob, 3_500, 'INSTANCE_CONTROL', stopped, 7_000),
    signed(bob, 1_200, 'AGGREGATE', { key: 'profile', address, content: { by: 'bob' } }, 6_500),
    signed(alice, -1_000_000, 'INSTANCE', instanceContent, 8_000),
    signed(bob, 4_100, 'INSTANCE', instanceContent, 5_500),
  ];
  const hashes = world.map(({ itemHash }) => itemHash);

  /** As a node brings it that noted it so much later than the first one. */
  async function put({ body, cameAt }: Sent, laterSeconds: number): Promise<void> {
    const { intake } = core.rooms;
    const notedMs =
      cameAt === undefined && laterSeconds === 0 ? undefined : ((cameAt ?? T + 90_000) + laterSeconds) * 1000;
    const message = { ...verifySubmission(body, Math.floor(Date.now() / 1000)), notedMs };
    await intake.peer.keep([{ accepted: acceptMessage(message) }]);
  }

  async function lookAt() {
    await core.rooms.pipeline.idle();
    const { cursor: _cursor, ...digest } = await digestState(core.rooms.db);
    const rows = await core.rooms.db
      .selectFrom('messages')
      .select(['item_hash', 'status', 'noted_ms'])
      .orderBy('item_hash')
      .execute();
    return { digest, rows };
  }

  test('H1, H2: whichever node noted a message first, and in whatever order they tell, the state is the same', async () => {
    await clearMessages(core);
    for (const one of world) await put(one, 0);
    const expected = await lookAt();
    const statusOf = (index: number) => expected.rows.find((row) => row.item_hash === hashes[index])!.status;
    assert.deepEqual(
      world.map((_, index) => statusOf(index)),
      [...Array(7).fill('processed'), ...Array(6).fill('rejected'), 'processed', 'processed'],
    );
    const { body: old } = await core.get(`/instances/${hashes.at(-2)}`);
    assert.deepEqual([old.created_at, old.effective_at], [T - 1_000_000, T + 8_000]);
    await fc.assert(
      fc.asyncProperty(
        fc.shuffledSubarray(
          world.map((_, index) => index),
          { minLength: world.length },
        ),
        fc.array(fc.tuple(fc.nat(world.length - 1), fc.integer({ min: 0, max: 5_000 })), { maxLength: 20 }),
        async (order, later) => {
          await clearMessages(core);
          // Nodes that noted it later speak before and after the one that was first.
          const told = later.map(([index, seconds]) => ({
            index,
            seconds,
            at: Math.abs(Math.sin(index + seconds)),
          }));
          const all = [
            ...order.map((index, at) => ({ index, seconds: 0, at: at / order.length })),
            ...told,
          ].sort((a, b) => a.at - b.at);
          for (const { index, seconds } of all) await put(world[index]!, seconds);
          assert.deepEqual(await lookAt(), expected);
        },
      ),
      { numRuns: 20 },
    );
  });
});
