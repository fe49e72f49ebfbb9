import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { buildNetworkMessage, diffNodes, signMessage } from '@skerry/client';
import { listen } from '@skerry/kit';
import { AppError, formatBound, sha256Hex } from '@skerry/protocol';
import { sql } from 'kysely';
import { digestState } from '../../state/digest.ts';
import { createTestCore, instanceContent, signers, type TestCore } from '../../testing/core.ts';
import { encodeFrames } from './frames.ts';
import { createHttpLink, type PeerLink } from './link.ts';
import { linkTo } from './testing/setup.ts';

const { alice, bob } = signers;
const signal = new AbortController().signal;
const note = (n: number) => ({ type: 'POST', content: { type: 'note', content: { n } } });

async function digestOf(core: TestCore) {
  await core.rooms.pipeline.idle();
  const { cursor: _, ...digest } = await digestState(core.rooms.db);
  return digest;
}

const round = (core: TestCore) => core.rooms.sync.syncer.round(signal);

/** Two nodes that know of each other. */
async function createPair(stack: AsyncDisposableStack): Promise<[TestCore, TestCore]> {
  const cores: TestCore[] = [];
  const link = (at: number) => linkTo(`node-${at}`, () => cores[at]!);
  cores.push(stack.use(await createTestCore({ peers: [link(1)] })));
  cores.push(stack.use(await createTestCore({ peers: [link(0)] })));
  return cores as [TestCore, TestCore];
}

const upload = (core: TestCore, text: string, fields: Record<string, string> = {}) => {
  const boundary = 'b';
  const all = { address: alice.address, signature: alice.sign(sha256Hex(text)), ...fields };
  const parts = Object.entries(all).map(
    ([name, value]) => `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  );
  const file = `--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\nContent-Type: text/plain\r\n\r\n${text}\r\n--b--\r\n`;
  return core.post('/storage/store', parts.join('') + file, {
    'content-type': `multipart/form-data; boundary=${boundary}`,
  });
};

describe('two nodes keep in step', () => {
  test('messages of every form and fate, sent here and there, are the same on both', async () => {
    await using stack = new AsyncDisposableStack();
    const [a, b] = await createPair(stack);
    const machine = (await a.send(alice, { type: 'INSTANCE', content: instanceContent })).body.item_hash;
    await b.send(alice, { type: 'INSTANCE_CONTROL', content: { instance_id: machine, action: 'stop' } });
    const first = (await a.send(alice, note(1))).body.item_hash;
    await b.send(alice, { type: 'POST', content: { type: 'amend', ref: first, content: { n: 2 } } });
    await a.send(bob, { type: 'AGGREGATE', content: { key: 'k', content: { a: 1 } } });
    await b.send(bob, { type: 'AGGREGATE', content: { key: 'k', content: { b: null } } });
    const gone = (await a.send(bob, note(3))).body.item_hash;
    await b.send(bob, { type: 'FORGET', content: { hashes: [gone] } });
    // Pretty-printed, as some clients sign: line breaks are part of the signed text.
    const pretty = signMessage(note(4), alice);
    await a.post('/messages', pretty.body);
    await b.post('/messages', buildNetworkMessage(note(5), bob).body);
    assert.notDeepEqual(await digestOf(a), await digestOf(b));
    for (let n = 0; n < 2; n++) {
      assert.ok(await round(a));
      assert.ok(await round(b));
    }
    assert.deepEqual(await digestOf(a), await digestOf(b));
    assert.equal((await b.get(`/messages/${gone}/status`)).body.status, 'forgotten');
    assert.equal((await a.get(`/instances/${machine}`)).body.desired, 'stopped');
    assert.equal(a.rooms.sync.syncer.view().state, 'synced');
  });

  test('what no hash covers is said by the node that took it first, on both', async () => {
    await using stack = new AsyncDisposableStack();
    const [a, b] = await createPair(stack);
    const network = buildNetworkMessage({ ...note(1), channel: 'left' }, alice).body;
    assert.equal((await a.post('/messages', network)).status, 200);
    await b.post('/messages', network.replace('"left"', '"right"'));
    await upload(a, 'text', { channel: 'one', tags: 'x' });
    await upload(b, 'text', { channel: 'two', tags: 'y' });
    await round(a);
    await round(b);
    const rows = (core: TestCore) =>
      core.rooms.db
        .selectFrom('messages')
        .select(['item_hash', 'channel', 'tags', 'time', 'status', 'noted_ms'])
        .orderBy('item_hash')
        .execute();
    const kept = await rows(a);
    assert.deepEqual(await rows(b), kept);
    assert.deepEqual(kept.map(({ channel }) => channel).sort(), ['left', 'one']);
    assert.deepEqual(await digestOf(a), await digestOf(b));
    // Lists and labels follow.
    assert.equal((await b.get('/messages?channels=right')).body.pagination.total, 0);
    assert.equal((await b.get('/messages?tags=x')).body.pagination.total, 1);
    assert.equal((await b.get('/messages?channels=left')).body.pagination.total, 1);
  });

  test('what was forgotten and erased is forgotten on a node that comes later', async () => {
    await using stack = new AsyncDisposableStack();
    const [a, b] = await createPair(stack);
    const gone = (await a.send(bob, note(1))).body.item_hash;
    await a.send(bob, { type: 'FORGET', content: { hashes: [gone] } });
    await a.rooms.pipeline.idle();
    await sql`update messages set content = null, source_text = null where status = 'forgotten'`.execute(
      a.rooms.db,
    );
    await round(b);
    assert.deepEqual(await digestOf(b), await digestOf(a));
    // A word of a peer: whoever can show the message is believed more.
    assert.equal((await b.get(`/messages/${gone}/status`)).body.status, 'forgotten');
  });

  test('over HTTP, from nothing, page by page', async () => {
    await using stack = new AsyncDisposableStack();
    const a = stack.use(await createTestCore());
    const url = await listen(a.api, '127.0.0.1', 0);
    const b = stack.use(await createTestCore({ peers: [createHttpLink(url)] }));
    for (let n = 0; n < 50; n++) await a.send(n % 2 ? alice : bob, note(n));
    assert.ok(await round(b));
    assert.deepEqual(await digestOf(b), await digestOf(a));
    const view = b.rooms.sync.syncer.view();
    assert.deepEqual([view.state, view.behind, view.peers[0]!.taken], ['synced', 0, 50]);
  });

  test('messages that are large, and many, are more than one body', async () => {
    await using stack = new AsyncDisposableStack();
    const a = stack.use(await createTestCore());
    const url = await listen(a.api, '127.0.0.1', 0);
    const b = stack.use(await createTestCore({ peers: [createHttpLink(url)] }));
    const large = { type: 'POST', content: { type: 'note', content: 'x'.repeat(190_000) } };
    for (let n = 0; n < 40; n++) await a.send(alice, { ...large, nonce: String(n) });
    assert.ok(await round(b), JSON.stringify(b.rooms.sync.syncer.view()));
    assert.deepEqual(await digestOf(b), await digestOf(a));
  });

  test('a node that nobody asks is heard: it offers what the other had time to ask for', async () => {
    await using stack = new AsyncDisposableStack();
    const a = stack.use(await createTestCore());
    const url = await listen(a.api, '127.0.0.1', 0);
    const hidden = stack.use(await createTestCore({ peers: [createHttpLink(url)] }));
    const given = () => hidden.rooms.sync.syncer.view().peers[0]!.given;
    await a.send(bob, note(0));
    for (let n = 1; n <= 5; n++) await hidden.send(alice, note(n));
    await hidden.post('/messages', buildNetworkMessage(note(6), bob).body);
    await round(hidden);
    assert.equal(given(), 0, 'the other may be about to ask');
    await round(hidden);
    assert.equal(given(), 6);
    assert.deepEqual(await digestOf(a), await digestOf(hidden));
    await hidden.send(alice, note(7));
    await round(hidden);
    assert.equal(given(), 7, 'it is known by now that nobody asks');
    assert.deepEqual(await digestOf(a), await digestOf(hidden));
    assert.equal(a.rooms.sync.set.index.size, 8);
  });

  test('what an offer says that nobody signed counts for nothing', async () => {
    await using core = await createTestCore();
    const { offers } = core.rooms.sync;
    const network = (channel: string, notedMs: number) =>
      JSON.stringify({
        ...JSON.parse(buildNetworkMessage({ ...note(1), channel }, alice).body),
        noted_ms: notedMs,
      }).replace('"sync":true,', '');
    const channelOf = async () =>
      (await core.rooms.db.selectFrom('messages').select('channel').executeTakeFirstOrThrow()).channel;
    assert.deepEqual(await offers.take(encodeFrames([network('right', 5_000)]), 'x'), {
      taken: 1,
      known: 0,
      refused: 0,
      forged: 0,
    });
    await offers.take(encodeFrames([network('wrong', 1)]), 'x');
    assert.equal(await channelOf(), 'right');
    const erased = '{"forgotten":{}}';
    assert.equal((await offers.take(encodeFrames([erased]), 'x')).refused, 1);
    const forged = signMessage(note(2), bob).body.replace('note', 'NOTE');
    assert.equal((await offers.take(encodeFrames(Array(10).fill(forged)), 'x')).forged, 10);
    await assert.rejects(offers.take(encodeFrames([]), 'x'), { code: 'NOT_PERMITTED' });
    await offers.take(encodeFrames([]), 'somebody else');
  });

  test('what two nodes disagree on can be told from outside', async () => {
    await using stack = new AsyncDisposableStack();
    const a = stack.use(await createTestCore());
    const b = stack.use(await createTestCore());
    const urls = [await listen(a.api, '127.0.0.1', 0), await listen(b.api, '127.0.0.1', 0)] as const;
    for (let n = 0; n < 40; n++) {
      const { body } = signMessage(note(n), alice);
      for (const core of [a, b]) await core.post('/messages', body);
    }
    assert.deepEqual(await diffNodes(...urls).then(({ onlyFirst, onlySecond }) => [onlyFirst, onlySecond]), [
      [],
      [],
    ]);
    const left = (await a.send(bob, note(100))).body.item_hash;
    const right = [
      (await b.send(bob, note(101))).body.item_hash,
      (await b.send(bob, note(102))).body.item_hash,
    ];
    const { onlyFirst, onlySecond } = await diffNodes(...urls);
    assert.deepEqual(
      onlyFirst.map(({ hash }) => hash),
      [left],
    );
    assert.deepEqual(onlySecond.map(({ hash }) => hash).sort(), right.sort());
  });

  test('a transfer that was broken off goes on where it was, and is forgotten at its end', async () => {
    await using stack = new AsyncDisposableStack();
    const source = stack.use(await createTestCore());
    for (let n = 0; n < 20; n++) await source.send(alice, { ...note(n), timestamp: 1_700_000_000 + n });
    const places: string[] = [];
    const link = linkTo('source', () => source);
    const spied: PeerLink = {
      ...link,
      fetchPage: (place, ended) => {
        places.push(place);
        return link.fetchPage(place, ended);
      },
    };
    const core = stack.use(await createTestCore({ peers: [spied] }));
    const middle = formatBound({ time: 1_700_000_010, prefix: new Uint8Array() });
    const { db } = core.rooms;
    // As an earlier process left it.
    await db.insertInto('sync_transfers').values({ peer: 'source', place: middle }).execute();
    assert.ok(await round(core));
    assert.deepEqual(places, [middle]);
    assert.deepEqual(await digestOf(core), await digestOf(source));
    assert.deepEqual(await db.selectFrom('sync_transfers').selectAll().execute(), []);
  });
});

describe('hostile peers', () => {
  const honest = async (stack: AsyncDisposableStack) => stack.use(await createTestCore());

  async function meet(stack: AsyncDisposableStack, change: (link: PeerLink) => Partial<PeerLink>) {
    const source = await honest(stack);
    for (let n = 0; n < 30; n++) await source.send(alice, note(n));
    const link = linkTo('hostile', () => source);
    const core = stack.use(await createTestCore({ peers: [{ ...link, ...change(link) }] }));
    return { core, source, view: () => core.rooms.sync.syncer.view().peers[0]! };
  }

  test('forged messages are not kept and cost their sender its reputation', async () => {
    await using stack = new AsyncDisposableStack();
    const { core, view } = await meet(stack, (link) => ({
      fetchMessages: async (keys, ended) =>
        (await link.fetchMessages(keys, ended)).map((frame) =>
          Buffer.from(frame.toString().replace('"n":', '"m":')),
        ),
    }));
    await round(core);
    assert.equal(core.rooms.sync.set.index.size, 0);
    assert.ok(view().points >= 50);
    await round(core);
    assert.equal(view().state, 'banned');
  });

  test('forged messages cost as much where the peer breaks the session off before its end', async () => {
    await using stack = new AsyncDisposableStack();
    let isLost = false;
    const { core, view } = await meet(stack, (link) => ({
      fetchMessages: async (keys, ended) => {
        if (isLost) throw new AppError('UPSTREAM_UNAVAILABLE', 'the connection was lost');
        isLost = true;
        const forged = Array.from({ length: 6 }, () => Buffer.from('{}'));
        return [...(await link.fetchMessages(keys.slice(0, 1), ended)), ...forged];
      },
    }));
    assert.equal(await round(core), false);
    assert.equal(view().taken, 1);
    assert.ok(view().points >= 50, `${view().points} points`);
  });

  test('a peer that lists messages and sends none of them, or others, keeps them from nobody', async () => {
    await using stack = new AsyncDisposableStack();
    const source = await honest(stack);
    for (let n = 0; n < 5; n++) await source.send(alice, note(n));
    const link = linkTo('honest', () => source);
    const silent: PeerLink = { ...link, name: 'silent', fetchMessages: async () => [] };
    const forging: PeerLink = { ...link, name: 'forging', fetchMessages: async () => [Buffer.from('{}')] };
    const alone = stack.use(await createTestCore({ peers: [silent] }));
    assert.equal(await round(alone), false);
    assert.equal(alone.rooms.sync.syncer.view().state, 'apart');
    const core = stack.use(await createTestCore({ peers: [silent, forging, link] }));
    await round(core);
    assert.equal(core.rooms.sync.set.index.size, 5);
    const { peers } = core.rooms.sync.syncer.view();
    assert.deepEqual(
      peers.map(({ name, taken, failure }) => [name, taken, failure]),
      [
        ['silent', 0, 'UPSTREAM_UNAVAILABLE'],
        ['forging', 0, null],
        ['honest', 5, null],
      ],
    );
  });

  test('garbage and answers to no question end the session', async () => {
    const endless = { kind: 'fingerprint', fingerprint: new Uint8Array(16) } as const;
    const changes: ((link: PeerLink) => Partial<PeerLink>)[] = [
      () => ({ fetchMessages: async () => [Buffer.from('garbage')] }),
      () => ({
        askRanges: async () => ({
          answer: [
            {
              kind: 'keys',
              lower: { time: 9, prefix: new Uint8Array() },
              upper: { time: 3, prefix: new Uint8Array() },
              keys: [],
            },
          ],
          sizeBytes: 1,
        }),
      }),
      () => ({
        askRanges: async (question) => ({
          answer: question.map((one) => ({ ...one, ...endless })),
          sizeBytes: 1,
        }),
      }),
    ];
    for (const change of changes) {
      await using stack = new AsyncDisposableStack();
      const { core, view } = await meet(stack, change);
      await round(core);
      assert.equal(core.rooms.sync.set.index.size, 0);
      assert.ok(view().points > 0, JSON.stringify(view()));
    }
  });

  test('a failure of the network, or of this node, is held against nobody', async () => {
    await using stack = new AsyncDisposableStack();
    const { core, view } = await meet(stack, (link) => ({
      ...createHttpLink('http://127.0.0.1:1'),
      name: link.name,
    }));
    assert.equal(await round(core), false);
    assert.deepEqual(
      [view().failure, view().points, core.rooms.sync.syncer.view().state],
      ['UPSTREAM_UNAVAILABLE', 0, 'apart'],
    );
  });

  test('a peer that is frozen is not said to be in step while a session waits for it', async () => {
    await using stack = new AsyncDisposableStack();
    const source = await honest(stack);
    let nowMs = Date.now();
    const core = stack.use(
      await createTestCore({
        ...{ peers: [linkTo('frozen', () => source)], now: () => nowMs },
        // The time passes: no clock is set.
        uptime: () => nowMs,
      }),
    );
    await round(core);
    const seen = () => {
      const { state, peers } = core.rooms.sync.syncer.view();
      return [state, peers[0]!.state];
    };
    assert.deepEqual(seen(), ['synced', 'synced']);
    nowMs += 600_000;
    assert.deepEqual(seen(), ['apart', 'failing']);
  });

  test('a message ahead of the clock is left for later', async () => {
    await using stack = new AsyncDisposableStack();
    const source = await honest(stack);
    await source.send(alice, note(1));
    let nowMs = Date.now() - 3_600_000;
    const core = stack.use(
      await createTestCore({ peers: [linkTo('ahead', () => source)], now: () => nowMs }),
    );
    await round(core);
    assert.equal(core.rooms.sync.set.index.size, 0);
    assert.equal(core.rooms.sync.syncer.view().peers[0]!.points, 0);
    nowMs += 3_600_000;
    await round(core);
    assert.equal(core.rooms.sync.set.index.size, 1);
  });
});
