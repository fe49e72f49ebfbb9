import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatBound } from '@skerry/protocol';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import type { PeerLink } from './link.ts';
import { linkTo } from './testing/setup.ts';

const { alice, bob } = signers;
const note = (n: number) => ({ type: 'POST', content: { type: 'note', content: { n } } });
const signal = new AbortController().signal;

/** Enough that a transfer begins. */
const CLAIMED = 1_000_000;
/** A peer that is asked for so many pages was believed for ever. */
const PAGES_MAX = 100;

/** Claims to have much, and never comes to an end: every page has the same message so often, at a place further on. */
function endless(link: PeerLink, copies: number, onPage: () => void = () => {}): PeerLink {
  let pages = 0;
  return {
    ...link,
    greet: async (ended) => ({ ...(await link.greet(ended)), messages: CLAIMED }),
    fetchPage: async (_place, ended) => {
      if (++pages > PAGES_MAX) throw new Error('a peer is asked for pages without end');
      onPage();
      const { frames } = await link.fetchPage('', ended);
      const next = formatBound({ time: 1, prefix: Uint8Array.of(pages >> 8, pages) });
      return { frames: Array.from({ length: copies }, () => frames[0]!), next };
    },
  };
}

async function createSource(stack: AsyncDisposableStack): Promise<TestCore> {
  const source = stack.use(await createTestCore());
  for (let n = 0; n < 5; n++) await source.send(alice, note(n));
  return source;
}

test('a peer whose pages have no end, of a message or none each, is not believed', async () => {
  for (const copies of [0, 1]) {
    await using stack = new AsyncDisposableStack();
    const source = await createSource(stack);
    const link = linkTo('endless', () => source);
    const core = stack.use(await createTestCore({ peers: [endless(link, copies)] }));
    assert.equal(await core.rooms.sync.syncer.round(signal), false);
    const [peer] = core.rooms.sync.syncer.view().peers;
    assert.equal(peer?.failure, 'PEER_MISBEHAVED');
    assert.ok(peer.points > 0);
  }
});

test('full pages of what is here already end a transfer, and comparing finds the rest', async () => {
  await using stack = new AsyncDisposableStack();
  const source = await createSource(stack);
  const link = linkTo('endless', () => source);
  const core = stack.use(await createTestCore({ peers: [endless(link, 2_000)] }));
  assert.ok(await core.rooms.sync.syncer.round(signal));
  assert.equal(core.rooms.sync.set.index.size, 5);
  assert.equal(core.rooms.sync.syncer.view().state, 'synced');
  assert.deepEqual(await core.rooms.db.selectFrom('sync_transfers').selectAll().execute(), []);
});

test('a peer that brings next to nothing holds up no transfer from another one', async () => {
  await using stack = new AsyncDisposableStack();
  const [source, other] = [await createSource(stack), stack.use(await createTestCore())];
  for (let n = 0; n < 3; n++) await other.send(bob, note(n));
  let uptimeMs = 0;
  const taken = Promise.withResolvers<void>();
  const link = linkTo('honest', () => other);
  const passTime = () => {
    uptimeMs += 50_000;
  };
  const slowLink = linkTo('slow', () => source);
  const slow = endless(slowLink, 300, passTime);
  const honest: PeerLink = {
    ...link,
    // Its session begins while the first one has its turn.
    greet: async (ended) => ({ ...(await link.greet(ended)), messages: CLAIMED }),
    fetchPage: async (place, ended) => {
      taken.resolve();
      return link.fetchPage(place, ended);
    },
  };
  const core = stack.use(await createTestCore({ peers: [slow, honest], uptime: () => uptimeMs }));
  const stop = new AbortController();
  const running = core.rooms.sync.syncer.run(stop.signal);
  const failed = running.then(() => Promise.reject(new Error('the sessions ended')));
  try {
    await Promise.race([taken.promise, failed]);
    const seen = () => core.rooms.sync.syncer.view().peers.map(({ name, state }) => `${name} ${state}`);
    assert.deepEqual(seen(), ['slow syncing', 'honest syncing']);
  } finally {
    stop.abort();
    await running;
  }
});
