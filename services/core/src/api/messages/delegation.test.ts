import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { createSigner, type MessageDraft, proveDelegation, type Signer, signMessage } from '@skerry/client';
import { verifySubmission } from '@skerry/protocol';
import { sql } from 'kysely';
import { acceptMessage } from '../../intake/accept.ts';
import { createTestCore, instanceContent, signers, type TestCore } from '../../testing/core.ts';

/** A second of the tests is longer than a revocation reaches back. */
const STEP_SECONDS = 1_000;
const T0 = 1_700_000_000;
const { alice, bob } = signers;
let next = 1;

describe('delegation', () => {
  let core: TestCore;
  let owner: Signer;
  let nowMs = 0;
  before(async () => {
    core = await createTestCore({ now: () => nowMs });
  });
  beforeEach(() => {
    owner = createSigner(`0x${(next++).toString(16).padStart(64, '4')}`);
  });
  after(() => core[Symbol.asyncDispose]());

  /** Arrives when it says that it was made. */
  const sendAt = (at: number, by: Signer, draft: Omit<MessageDraft, 'timestamp'>) => {
    const timestamp = T0 + at * STEP_SECONDS;
    nowMs = timestamp * 1000;
    return core.send(by, { ...draft, timestamp });
  };
  const grant = (at: number, ...authorizations: unknown[]) => {
    const content = { key: 'security', content: { authorizations } };
    return sendAt(at, owner, { type: 'AGGREGATE', content, channel: 'security' });
  };
  let nonce = 0;
  const act = async (draft: Omit<MessageDraft, 'timestamp'>, at = 100, by: Signer = bob) => {
    const content = { ...(draft.content as object), address: owner.address };
    const { status, body } = await sendAt(at, by, { ...draft, content, nonce: `${nonce++}` });
    return { status, code: body.code, hash: body.item_hash ?? body.details?.item_hash };
  };
  const note = (type = 'note') => ({ type: 'POST', content: { type, content: {} } });
  const element = (key: string) => ({ type: 'AGGREGATE', content: { key, content: { by: 'bob' } } });

  test('what is granted holds from that second on, what is revoked ends with it, whenever it is told', async () => {
    assert.deepEqual((await act(note())).code, 'NOT_PERMITTED');
    await grant(10, { address: bob.address });
    await grant(20);
    assert.equal((await act(note(), 9)).status, 403);
    assert.equal((await act(note(), 10)).status, 200, 'the second itself is in');
    assert.equal((await act(note(), 19)).status, 200);
    assert.equal((await act(note(), 20)).status, 403);
    const early = await act(note(), 5);
    const late = await act(note(), 15);
    assert.deepEqual([early.status, late.status], [403, 200]);
    // History that becomes known later is judged again.
    await grant(4, { address: bob.address });
    await grant(12);
    await core.rooms.pipeline.idle();
    const statusOf = async (hash: string) => (await core.get(`/messages/${hash}/status`)).body.status;
    assert.deepEqual([await statusOf(early.hash), await statusOf(late.hash)], ['processed', 'rejected']);
  });

  test('every list narrows: chain, channels, types, types of posts, keys of aggregates', async () => {
    await grant(
      1,
      { address: bob.address.toUpperCase().replace('0X', '0x'), types: ['POST'], post_types: ['note'] },
      { address: bob.address, types: ['AGGREGATE'], aggregate_keys: ['profile'], chain: 'ETH' },
      { address: bob.address, types: ['PROGRAM'], channels: ['code'] },
      { address: bob.address, types: ['INSTANCE'], chain: 'SOL' },
      { address: alice.address, types: [], channels: [] },
    );
    const program = { name: 'p', code: 'x', runtime: 'python3', memory: 128, timeout: 5 };
    const cases: [Omit<MessageDraft, 'timestamp'>, number, Signer?][] = [
      [note(), 200],
      [note('other'), 403],
      [element('profile'), 200],
      [element('other'), 403],
      [{ type: 'PROGRAM', content: program, channel: 'code' }, 200],
      [{ type: 'PROGRAM', content: program, channel: 'other' }, 403],
      [{ type: 'INSTANCE', content: instanceContent }, 403],
      [{ type: 'INSTANCE', content: instanceContent }, 200, alice],
      [note('whatever'), 200, alice],
      [note(), 403, signers.node],
    ];
    for (const [draft, status, by] of cases)
      assert.equal((await act(draft, 100, by)).status, status, JSON.stringify(draft).slice(0, 120));
  });

  /** What restricts nothing if it is read by those who know other names, and what is no permission at all. */
  const UNCLEAR: readonly [entry: unknown, reason: RegExp][] = [
    ...[null, 7, 'x', []].map((entry): [unknown, RegExp] => [entry, /\[0\] must be an object/]),
    [{}, /must have an "address"/],
    [{ address: 7 }, /must have an "address"/],
    [{ address: bob.address, types: 'POST' }, /must have "types" as a list of texts/],
    [{ address: bob.address, channels: {} }, /must have "channels" as a list/],
    [{ address: bob.address, channels: [5] }, /must have "channels" as a list of texts/],
    [{ address: bob.address, chain: 1 }, /must have a "chain" that is text/],
    [{ address: bob.address, type: ['POST'] }, /unknown field "type"; allowed are address, chain, channels/],
    [{ address: bob.address, chains: ['ETH'] }, /unknown field "chains"/],
  ];

  test('what is not understood is refused to its owner, and permits nothing where other nodes pass it on', async () => {
    for (const [entry, reason] of UNCLEAR) {
      const { status, body } = await grant(1, entry);
      assert.deepEqual([status, body.code], [400, 'INVALID_CONTENT'], JSON.stringify(entry));
      assert.match(body.error, reason);
    }
    const authorizations = UNCLEAR.map(([entry]) => entry);
    const { body } = signMessage(
      {
        ...{ type: 'AGGREGATE', channel: 'security', timestamp: T0 + STEP_SECONDS },
        content: { key: 'security', content: { authorizations } },
      },
      owner,
    );
    const accepted = acceptMessage(verifySubmission(body, T0 + 2 * STEP_SECONDS));
    await core.rooms.intake.peer.keep([{ accepted }]);
    assert.equal((await act(note())).status, 403);
    const granted = await core.get(`/authorizations/granted/${owner.address}.json`);
    assert.deepEqual(granted.body.authorizations, {});
    for (const none of ['all', {}]) {
      const content = { key: 'security', content: { authorizations: none } };
      const refused = await sendAt(2, owner, { type: 'AGGREGATE', content, channel: 'security' });
      assert.match(refused.body.error, /must be a list; \[\] permits nobody/);
    }
  });

  test('the aggregate security is written and forgotten by its owner alone, whatever is granted', async () => {
    const { body } = await grant(1, { address: bob.address });
    assert.equal((await act(element('security'))).code, 'NOT_PERMITTED');
    assert.equal(
      (await act({ type: 'FORGET', content: { hashes: [body.item_hash] } })).code,
      'NOT_PERMITTED',
    );
    assert.equal((await act(element('profile'))).status, 200);
  });

  test('a delegate changes and forgets what is the owner’s, as far as it might have written it', async () => {
    await grant(
      1,
      { address: bob.address, types: ['POST', 'INSTANCE_UPDATE'] },
      { address: bob.address, types: ['FORGET'] },
    );
    const { body: post } = await sendAt(2, owner, note());
    const { body: machine } = await sendAt(2, owner, { type: 'INSTANCE', content: instanceContent });
    const { body: own } = await sendAt(2, owner, {
      type: 'AGGREGATE',
      content: { key: 'k', content: {} },
    });
    const amend = { type: 'POST', content: { type: 'amend', ref: post.item_hash, content: { by: 'bob' } } };
    assert.equal((await act(amend)).status, 200);
    const change = (type: string, more: object) =>
      sendAt(9, bob, { type, content: { instance_id: machine.item_hash, ...more } });
    assert.equal((await change('INSTANCE_UPDATE', { name: 'bobs' })).status, 200);
    assert.equal((await change('INSTANCE_CONTROL', { action: 'stop' })).status, 403);
    assert.equal((await act({ type: 'FORGET', content: { hashes: [own.item_hash] } })).status, 403);
    assert.equal(
      (await act({ type: 'FORGET', content: { hashes: [post.item_hash, own.item_hash] } })).status,
      403,
    );
    assert.equal((await act({ type: 'FORGET', content: { hashes: [post.item_hash] } })).status, 200);
    await core.rooms.pipeline.idle();
    assert.equal((await core.get(`/messages/${post.item_hash}`)).body.status, 'forgotten');
    assert.equal((await core.get(`/messages/${own.item_hash}`)).body.status, 'processed');
  });

  test('readers check by themselves what permits a message, and that the owner signed it', async () => {
    const source = { coreUrl: await core.listen() };
    const messageAt = (at: number, by: Signer) => {
      const content = { type: 'note', content: {}, address: owner.address };
      const timestamp = T0 + at * STEP_SECONDS;
      return verifySubmission(signMessage({ type: 'POST', content, timestamp }, by).body, timestamp);
    };
    const hashOf = async (sent: ReturnType<typeof grant>) => (await sent).body.item_hash as string;
    const granted = await hashOf(grant(10, { address: bob.address, types: ['POST'] }));
    const revoked = await hashOf(grant(20));
    assert.equal(await proveDelegation(source, messageAt(15, owner)), undefined);
    const proven = { owner: owner.address, refused: [], verified: 2, isCut: false };
    assert.deepEqual(await proveDelegation(source, messageAt(15, bob)), {
      ...{ ...proven, verified: 1, grantedBy: granted, refusal: undefined },
    });
    assert.deepEqual(await proveDelegation(source, messageAt(9, bob)), {
      ...{ ...proven, verified: 0, grantedBy: null, refusal: { kind: 'unpermitted' } },
    });
    assert.deepEqual(await proveDelegation(source, messageAt(25, bob)), {
      ...{ ...proven, grantedBy: revoked, refusal: { kind: 'unpermitted' } },
    });
    assert.deepEqual(await proveDelegation(source, messageAt(19.7, bob)), {
      ...{ ...proven, grantedBy: granted },
      refusal: { kind: 'revoked', at: T0 + 20 * STEP_SECONDS },
    });
    assert.equal((await proveDelegation(source, messageAt(15, alice)))?.refusal?.kind, 'unpermitted');

    // A core node that makes up whom the owner permits.
    await sql`update messages set source_text = replace(source_text, ${bob.address}, ${alice.address}),
      content = replace(content::text, ${bob.address}, ${alice.address})::jsonb
      where item_hash = ${granted}`.execute(core.rooms.db);
    const lie = await proveDelegation(source, messageAt(15, alice));
    assert.deepEqual(
      [lie?.refusal?.kind, lie?.refused.map(({ itemHash }) => itemHash)],
      ['unpermitted', [granted]],
    );
  });
});
