import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { signMessage } from '@skerry/client';
import { CoreSync } from '@skerry/client/core-sync';
import { until } from '@skerry/kit/testing/until';
import { AppError, formatBound } from '@skerry/protocol';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import type { PeerLink } from './link.ts';
import { linkTo } from './testing/setup.ts';

const { alice, bob } = signers;
const note = (n: number) => ({ type: 'POST', content: { type: 'note', content: { n } } });
const signal = new AbortController().signal;
const MINUTE_MS = 60_000;

const round = (core: TestCore) => core.rooms.sync.syncer.round(signal);
const seen = (core: TestCore) => {
  const { state, peers } = core.rooms.sync.syncer.view();
  return [state, ...peers.map((peer) => peer.state)].join(' ');
};

/** A node with these peers, and its uptime, which passes as the test says. */
async function createNode(stack: AsyncDisposableStack, peers: readonly PeerLink[], isLeading = true) {
  const time = { uptimeMs: 0 };
  const core = stack.use(
    await createTestCore({ peers, uptime: () => time.uptimeMs, isLeading: () => isLeading }),
  );
  return { core, time };
}

async function createSource(stack: AsyncDisposableStack, messages: number): Promise<TestCore> {
  const source = stack.use(await createTestCore());
  for (let n = 0; n < messages; n++) await source.send(alice, note(n));
  return source;
}

const away = async () => {
  throw new AppError('UPSTREAM_UNAVAILABLE', 'it is away');
};

describe('a peer that brings nothing of what it says to have', () => {
  test('is not waited for after ten minutes in which it answered, however its sessions end, and is named', async () => {
    await using stack = new AsyncDisposableStack();
    const source = await createSource(stack, 5);
    const link = linkTo('liar', () => source);
    const during: string[] = [];
    const liar: PeerLink = {
      ...link,
      fetchMessages: async () => {
        during.push(seen(core));
        return [];
      },
    };
    const { core, time } = await createNode(stack, [liar, { ...link, name: 'away', greet: away }]);
    for (let minute = 0; minute < 12; minute++) {
      assert.equal(await round(core), false);
      time.uptimeMs += MINUTE_MS;
    }
    assert.equal(during[0], 'syncing syncing new');
    assert.equal(during[9], 'syncing syncing failing');
    assert.deepEqual(during.slice(10), ['apart stalled failing', 'apart stalled failing']);
    assert.equal(core.rooms.sync.syncer.view().behind, 0, 'what it says to have is not lacked');
  });

  test('does not keep those who decide by the node from it in a session that has no end', async () => {
    await using stack = new AsyncDisposableStack();
    const source = await createSource(stack, 5);
    const link = linkTo('liar', () => source);
    const reached = Promise.withResolvers<void>();
    const released = Promise.withResolvers<Buffer[]>();
    const liar: PeerLink = {
      ...link,
      fetchMessages: () => {
        reached.resolve();
        return released.promise;
      },
    };
    const { core, time } = await createNode(stack, [liar]);
    const session = round(core);
    await reached.promise;
    const sync = new CoreSync('http://core', {}, () => time.uptimeMs);
    const judge = () => sync.judge(core.rooms.sync.syncer.view());
    time.uptimeMs = 10 * MINUTE_MS - 1;
    assert.match(judge()!, /still fetching what its peers have: at least 5/);
    time.uptimeMs = 10 * MINUTE_MS;
    // As long as of a node that no peer answers.
    assert.notEqual(judge(), null);
    time.uptimeMs += 2 * MINUTE_MS;
    assert.equal(judge(), null);
    released.resolve([]);
    await session;
  });

  test('nor by pages without end of what is here already', async () => {
    await using stack = new AsyncDisposableStack();
    const source = await createSource(stack, 5);
    const link = linkTo('liar', () => source);
    const during: string[] = [];
    const liar: PeerLink = {
      ...link,
      greet: async (ended) => ({ ...(await link.greet(ended)), messages: 1_000_000 }),
      fetchPage: async () => {
        time.uptimeMs += MINUTE_MS;
        during.push(seen(core));
        const { frames } = await link.fetchPage('', signal);
        const next = formatBound({ time: 1, prefix: Uint8Array.of(during.length) });
        return {
          frames: Array.from({ length: 300 }, () => frames[0]!),
          next: during.length < 20 ? next : null,
        };
      },
    };
    const { core, time } = await createNode(stack, [liar]);
    await round(core);
    assert.deepEqual([during[0], during.at(-1)], ['syncing syncing', 'apart stalled']);
  });

  test('is waited for while it does bring messages, and once it was in step', async () => {
    await using stack = new AsyncDisposableStack();
    const messages = 40;
    const source = await createSource(stack, messages);
    const link = linkTo('slow', () => source);
    const during = new Set<string>();
    let passMs = 9 * MINUTE_MS + 50_000;
    const slow: PeerLink = {
      ...link,
      fetchMessages: async (keys, ended) => {
        during.add(seen(core));
        time.uptimeMs += passMs;
        passMs = 1_000;
        during.add(seen(core));
        return link.fetchMessages(keys.slice(0, 1), ended);
      },
    };
    const { core, time } = await createNode(stack, [slow]);
    assert.ok(await round(core));
    assert.deepEqual([...during], ['syncing syncing']);
    assert.equal(core.rooms.sync.set.index.size, messages);
    time.uptimeMs += 60 * MINUTE_MS;
    core.rooms.sync.syncer.startOver();
    assert.equal(seen(core), 'syncing syncing');
    assert.ok(await round(core));
    assert.equal(seen(core), 'synced synced');
  });
});

test('time in which a peer does not answer is not held against it', async () => {
  await using stack = new AsyncDisposableStack();
  const source = await createSource(stack, 5);
  const link = linkTo('honest', () => source);
  const during: string[] = [];
  let isAway = false;
  const honest: PeerLink = {
    ...link,
    greet: (ended) => (isAway ? away() : link.greet(ended)),
    fetchMessages: async (keys, ended) => {
      during.push(seen(core));
      return during.length === 1 ? away() : link.fetchMessages(keys, ended);
    },
  };
  const { core, time } = await createNode(stack, [honest]);
  assert.equal(await round(core), false);
  isAway = true;
  assert.equal(await round(core), false);
  time.uptimeMs += 60 * MINUTE_MS;
  isAway = false;
  assert.ok(await round(core));
  assert.deepEqual(during, ['syncing syncing', 'syncing syncing']);
});

test('a peer that waits for the turn of another one holds the state, however long that one brings nothing', async () => {
  await using stack = new AsyncDisposableStack();
  const source = await createSource(stack, 5);
  const link = linkTo('honest', () => source);
  const greet: PeerLink['greet'] = async (ended) => ({ ...(await link.greet(ended)), messages: 1_000_000 });
  const reached = Promise.withResolvers<void>();
  const released = Promise.withResolvers<never>();
  released.promise.catch(() => {});
  const fetchPage = () => {
    reached.resolve();
    return released.promise;
  };
  const liar: PeerLink = { ...link, name: 'liar', greet, fetchPage };
  const honest: PeerLink = { ...link, greet: (ended) => reached.promise.then(() => greet(ended)) };
  const { core, time } = await createNode(stack, [liar, honest]);
  const { syncer } = core.rooms.sync;
  const stop = new AbortController();
  const running = syncer.run(stop.signal);
  try {
    await until('both have answered', () => syncer.view().peers.every(({ messages }) => messages !== null));
    time.uptimeMs += 60 * MINUTE_MS;
    assert.equal(seen(core), 'syncing stalled syncing');
  } finally {
    stop.abort();
    released.reject(new AppError('UPSTREAM_UNAVAILABLE', 'it is away'));
    await running;
  }
});

test('a process that only compares is in step without what this node refuses, once it was waited for', async () => {
  await using stack = new AsyncDisposableStack();
  const source = await createSource(stack, 2);
  const { core, time } = await createNode(stack, [linkTo('peer', () => source)], false);
  const sendBoth = async (n: number) => {
    const { body } = signMessage(note(n), bob);
    await source.post('/messages', body);
    return () => core.post('/messages', body);
  };
  // The process that leads takes these in the end, and refuses the two that the peer had before.
  const take = await sendBoth(10);
  assert.equal(await round(core), false);
  await take();
  time.uptimeMs += 9 * MINUTE_MS;
  assert.equal(await round(core), false);
  assert.equal(seen(core), 'syncing syncing');
  // What came gave it a second.
  time.uptimeMs += MINUTE_MS + 1_000;
  assert.equal(await round(core), false);
  assert.ok(await round(core));
  assert.equal(seen(core), 'synced synced');
  time.uptimeMs += 60 * MINUTE_MS;
  await (await sendBoth(11))();
  assert.ok(await round(core));
  // Something new is waited for as ever: first it may be on its way, then it is missing.
  await sendBoth(12);
  assert.ok(await round(core));
  assert.equal(await round(core), false);
});
