import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { signMessage } from '@skerry/client';
import { listen } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { sql } from 'kysely';
import { AHEAD_MAX_MS } from '../../intake/sources.ts';
import { digestState } from '../../state/digest.ts';
import { createTestCore, instanceContent, signers, type TestCore } from '../../testing/core.ts';
import { encodeFrames } from './frames.ts';
import { createHttpLink, type PeerLink } from './link.ts';
import { linkTo } from './testing/setup.ts';

const { alice, bob } = signers;
const T = 1_700_000_000;
const signal = new AbortController().signal;

const machine = (n: number) =>
  signMessage({ type: 'INSTANCE', content: instanceContent, timestamp: T, nonce: String(n) }, bob);

/** Nodes with clocks of their own, each a peer of the others. */
async function createNodes(stack: AsyncDisposableStack, count: number) {
  const cores: TestCore[] = [];
  const clocks = Array.from({ length: count }, () => T * 1000);
  for (let at = 0; at < count; at++) {
    const peers = [...clocks.keys()]
      .filter((other) => other !== at)
      .map((other) => linkTo(`node-${other}`, () => cores[other]!));
    cores.push(stack.use(await createTestCore({ peers, now: () => clocks[at]! })));
  }
  return { cores, clocks };
}

const notedOf = async ({ rooms }: TestCore, hash: string) =>
  (
    await rooms.db
      .selectFrom('messages')
      .select('noted_ms')
      .where('item_hash', '=', hash)
      .executeTakeFirstOrThrow()
  ).noted_ms;

async function agree(cores: readonly TestCore[], rounds = 2): Promise<void> {
  for (let round = 0; round < rounds; round++)
    for (const { rooms } of cores) {
      await rooms.sync.syncer.round(signal);
      await rooms.pipeline.idle();
    }
  const digests = await Promise.all(
    cores.map(async ({ rooms }) => {
      const { cursor: _, ...digest } = await digestState(rooms.db);
      return digest;
    }),
  );
  for (const digest of digests) assert.deepEqual(digest, digests[0]);
  const [first, ...others] = cores.map(({ rooms }) => rooms.sync.set.index);
  for (const other of others)
    assert.deepEqual(other.fingerprint(0, other.size), first!.fingerprint(0, first!.size));
}

describe('since when a message is there', () => {
  test('H1, H2: nodes that noted a late message at different times agree on the earliest, and tell of nothing but the change', async () => {
    await using stack = new AsyncDisposableStack();
    const { cores, clocks } = await createNodes(stack, 3);
    const { body, itemHash } = machine(1);
    clocks[0] = (T + 5_000) * 1000;
    clocks[1] = (T + 3_000) * 1000;
    clocks[2] = (T + 9_000) * 1000;
    for (const core of cores) assert.ok((await core.post('/messages', body)).status <= 202);
    await agree(cores);
    for (const core of cores) {
      assert.equal(await notedOf(core, itemHash), (T + 3_000) * 1000);
      const { body: view } = await core.get(`/instances/${itemHash}`);
      assert.deepEqual([view.created_at, view.effective_at], [T, T + 3_000]);
      const { body: page } = await core.get('/events?limit=100');
      const kinds = page.events.map(({ kind }: { kind: string }) => kind);
      assert.ok(!kinds.includes('instance_removed') && !kinds.includes('message_removed'), kinds.join());
    }
  });

  test('H1, H2: who had it in time says nothing, and that counts; what is in time costs no byte', async () => {
    await using stack = new AsyncDisposableStack();
    const { cores, clocks } = await createNodes(stack, 2);
    const { body, itemHash } = machine(2);
    await cores[0]!.post('/messages', body);
    clocks[0] = clocks[1] = (T + 4_000) * 1000;
    await cores[1]!.post('/messages', body);
    assert.equal(await notedOf(cores[1]!, itemHash), (T + 4_000) * 1000);
    await agree(cores);
    for (const core of cores) assert.equal(await notedOf(core, itemHash), null);
  });

  test('H1: a forgotten message is dated, too, and stays forgotten', async () => {
    await using stack = new AsyncDisposableStack();
    const { cores, clocks } = await createNodes(stack, 2);
    const { body, itemHash } = machine(3);
    for (const [at, core] of cores.entries()) {
      clocks[at] = (T + 2_000 * (at + 1)) * 1000;
      await core.post('/messages', body);
      await core.send(bob, { type: 'FORGET', content: { hashes: [itemHash] }, timestamp: T + 1 });
      await core.rooms.pipeline.idle();
    }
    await sql`update messages set content = null, source_text = null where status = 'forgotten'`.execute(
      cores[1]!.rooms.db,
    );
    await agree(cores);
    for (const core of cores) {
      assert.equal(await notedOf(core, itemHash), (T + 2_000) * 1000);
      assert.equal((await core.get(`/messages/${itemHash}/status`)).body.status, 'forgotten');
    }
  });

  test('H1: neither gossip nor an offer says since when a message is there', async () => {
    await using core = await createTestCore({ now: () => (T + 5_000) * 1000 });
    const { sync, intake } = core.rooms;
    const withDate = (text: string, notedMs: number) => text.replace(/}$/, `,"noted_ms":${notedMs}}`);
    const [gossiped, offered, silent] = [machine(4), machine(5), machine(6)];
    const frame = Buffer.from(withDate(gossiped.body, T * 1000));
    await intake.gossip.keep(await intake.gossip.read([frame]));
    await sync.offers.take(encodeFrames([withDate(offered.body, (T + 700) * 1000), silent.body]), 'x');
    for (const { itemHash } of [gossiped, offered, silent])
      assert.equal(await notedOf(core, itemHash), (T + 5_000) * 1000);
  });

  test('H1: a peer cannot say that a message is from later than now', async () => {
    await using stack = new AsyncDisposableStack();
    const { cores, clocks } = await createNodes(stack, 2);
    clocks[0] = (T + 90_000) * 1000;
    clocks[1] = (T + 2_000) * 1000;
    const { body, itemHash } = machine(7);
    await cores[0]!.post('/messages', body);
    await agree(cores);
    assert.equal(await notedOf(cores[0]!, itemHash), (T + 2_000) * 1000);
  });

  test('H1: a peer that shows a later date and takes no offer makes no message later that another peer had in time', async () => {
    await using stack = new AsyncDisposableStack();
    let nowMs = T * 1000;
    const core = async (peers: PeerLink[] = []) =>
      stack.use(await createTestCore({ peers, now: () => nowMs }));
    const [lying, honest] = [await core(), await core()];
    const stubborn: PeerLink = {
      ...linkTo('lying', () => lying),
      offer: async (texts) => ({ taken: 0, known: texts.length, refused: 0, forged: 0 }),
    };
    let isAway = false;
    const reachable = linkTo('honest', () => honest);
    const mostly: PeerLink = {
      ...reachable,
      greet: async (ended) => {
        if (isAway) throw new AppError('UPSTREAM_UNAVAILABLE', 'it is away');
        return reachable.greet(ended);
      },
    };
    const node = await core([stubborn, mostly]);
    const { body, itemHash } = machine(9);
    for (const one of [honest, node]) await one.post('/messages', body);
    nowMs += 5_000_000;
    await lying.post('/messages', body);
    for (let session = 0; session < 8; session++) {
      await node.rooms.sync.syncer.round(signal);
      isAway = true;
    }
    assert.equal(await notedOf(node, itemHash), null);
  });

  for (const slowMs of [0, 3_000_000, 3 * AHEAD_MAX_MS])
    test(`H1: a node that nobody asks, its clock ${slowMs / 1_000} s slow, gives way to the word of those who do not believe it`, async () => {
      await using stack = new AsyncDisposableStack();
      let nowMs = T * 1000;
      let hiddenMs = nowMs;
      const known = stack.use(await createTestCore({ now: () => nowMs }));
      const url = await listen(known.api, '127.0.0.1', 0);
      const peers = [createHttpLink(url)];
      const hidden = stack.use(await createTestCore({ now: () => hiddenMs, peers }));
      const { body, itemHash } = machine(8);
      await hidden.post('/messages', body);
      nowMs += slowMs + 5_000_000;
      hiddenMs = nowMs - slowMs;
      for (let round = 0; round < 8; round++) await hidden.rooms.sync.syncer.round(signal);
      assert.equal(await notedOf(known, itemHash), nowMs);
      // A peer's word moves no message into the far future.
      assert.equal(await notedOf(hidden, itemHash), Math.min(nowMs, hiddenMs + AHEAD_MAX_MS));
      await agree([hidden], 1);
      assert.equal(
        (await known.send(alice, { type: 'POST', content: { type: 'n' }, timestamp: T })).status,
        200,
      );
    });
});
