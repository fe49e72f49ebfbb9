import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { signMessage } from '@skerry/client';
import { CoreSync } from '@skerry/client/core-sync';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { AppError, answerRanges, formatBound, type SyncKey } from '@skerry/protocol';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import { NetworkClock } from './clock.ts';
import type { PeerLink } from './link.ts';
import { MISSING_MAX } from './session.ts';
import { SetIndex } from './set-index.ts';
import { Syncer } from './syncer.ts';
import { linkTo } from './testing/setup.ts';

const { alice, bob } = signers;
const NOW_SECONDS = Math.floor(Date.now() / 1000);
/** In the order of their numbers; the same one is the same message. */
const note = (n: number) => ({
  ...{ type: 'POST', content: { type: 'note', content: { n } } },
  timestamp: NOW_SECONDS + n,
  nonce: `nonce ${n}`,
});
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

describe('a process that only compares', () => {
  test('does not wait for what a peer only counts in its greeting', async () => {
    await using stack = new AsyncDisposableStack();
    const source = await createSource(stack, 2);
    const link = linkTo('liar', () => source);
    const liar: PeerLink = {
      ...link,
      greet: async (ended) => ({ ...(await link.greet(ended)), messages: 1_000_000_000 }),
    };
    const { core } = await createNode(stack, [liar], false);
    assert.equal(await round(core), false);
    for (const n of [0, 1]) await core.send(alice, note(n));
    assert.ok(await round(core));
    assert.equal(seen(core), 'synced synced');
  });

  test('does not wait longer for a peer that lists without end, because clients post', async () => {
    await using stack = new AsyncDisposableStack();
    const source = await createSource(stack, 0);
    const madeUp = SetIndex.of(
      Array.from({ length: MISSING_MAX + 1 }, (_, time): SyncKey => ({ time, id: new Uint8Array(36) })),
    );
    const liar: PeerLink = {
      ...linkTo('liar', () => source),
      askRanges: async (question) => ({ answer: answerRanges(madeUp, question), sizeBytes: 1 }),
    };
    const { core, time } = await createNode(stack, [liar], false);
    await round(core);
    time.uptimeMs = 10 * MINUTE_MS - 1;
    assert.equal(seen(core), 'syncing syncing');
    for (const n of [0, 1]) await core.send(alice, note(n));
    await round(core);
    time.uptimeMs += 1;
    assert.equal(seen(core), 'apart stalled');
  });

  test('gives up nothing while nothing comes: it may be that nobody fetches', async () => {
    await using stack = new AsyncDisposableStack();
    const source = await createSource(stack, 3);
    const { core, time } = await createNode(stack, [linkTo('peer', () => source)], false);
    for (let minute = 0; minute < 15; minute++) {
      assert.equal(await round(core), false);
      time.uptimeMs += MINUTE_MS;
    }
    assert.equal(seen(core), 'apart stalled');
    // Whoever leads is back, and goes from the first to the last.
    await core.send(alice, note(0));
    assert.equal(await round(core), false);
    for (const n of [1, 2]) await core.send(alice, note(n));
    assert.ok(await round(core));
    assert.equal(seen(core), 'synced synced');
  });
});

test("a failure of the node's own, and the time until it tries again, is not held against a peer", async () => {
  await using stack = new AsyncDisposableStack();
  const source = await createSource(stack, 5);
  const { core, time } = await createNode(stack, []);
  const { db, sync, intake } = core.rooms;
  const log = createLogger('test', 'silent');
  const clock = new NetworkClock({ machineNow: Date.now, uptime: () => time.uptimeMs, log });
  const faults = ['STORAGE_FULL', 'DATABASE_UNAVAILABLE'] as const;
  let fault: (typeof faults)[number] | undefined;
  const fail = async (code: (typeof faults)[number]) => {
    time.uptimeMs += 11 * MINUTE_MS;
    throw new AppError(code, 'it is the fault of this node');
  };
  const during: string[] = [];
  const link = linkTo('honest', () => source);
  const honest: PeerLink = {
    ...link,
    fetchMessages: (keys, ended) => {
      during.push(syncer.view().peers[0]!.state);
      return link.fetchMessages(keys, ended);
    },
  };
  const { peer, offer } = intake;
  const keep: typeof peer.keep = (...given) => (fault ? fail(fault) : peer.keep(...given));
  const syncer = new Syncer({
    ...{ db, clock, set: sync.set, intake: { peer: { ...peer, keep }, offer } },
    ...{ links: [honest], intervalMs: MINUTE_MS, log },
  });
  for (fault of faults) {
    assert.equal(await syncer.round(signal), false);
    assert.equal(syncer.view().peers[0]!.failure, fault);
    time.uptimeMs += 60 * MINUTE_MS;
  }
  fault = undefined;
  assert.ok(await syncer.round(signal));
  assert.deepEqual(during, ['syncing', 'syncing', 'syncing']);
});
