import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CoreSync } from '@skerry/client/core-sync';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { AppError, formatBound } from '@skerry/protocol';
import { createTestCore, signers } from '../../testing/core.ts';
import { NetworkClock } from './clock.ts';
import type { PeerLink } from './link.ts';
import { Syncer } from './syncer.ts';
import { linkTo } from './testing/setup.ts';
import { createNode, createSource, MINUTE_MS, note, round, seen, signal } from './testing/waiting.ts';

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

  /** One that brings nothing until its time is nearly over, and then a message at a time. */
  async function createSlow(stack: AsyncDisposableStack, messages: number, everyMs: number) {
    const source = await createSource(stack, messages);
    const link = linkTo('slow', () => source);
    const during = new Set<string>();
    let passMs = 10 * MINUTE_MS - everyMs;
    const slow: PeerLink = {
      ...link,
      fetchMessages: async (keys, ended) => {
        during.add(seen(core));
        time.uptimeMs += passMs;
        passMs = everyMs;
        during.add(seen(core));
        return link.fetchMessages(keys.slice(0, 1), ended);
      },
    };
    const { core, time } = await createNode(stack, [slow]);
    return { core, time, during };
  }

  test('holds no session where it sends one message for each request: the others are asked, and it again later', async () => {
    await using stack = new AsyncDisposableStack();
    const source = await createSource(stack, 120);
    const link = linkTo('trickle', () => source);
    let requests = 0;
    const trickle: PeerLink = {
      ...link,
      fetchMessages: (keys, ended) => {
        requests++;
        return link.fetchMessages(keys.slice(0, 1), ended);
      },
    };
    const { core } = await createNode(stack, [trickle, { ...link, name: 'honest' }]);
    assert.equal(await round(core), false);
    assert.ok(requests <= 17, `${requests} requests`);
    assert.equal(core.rooms.sync.set.index.size, 120);
    assert.ok(await round(core));
  });

  test('is not waited for longer because it brings a trickle', async () => {
    await using stack = new AsyncDisposableStack();
    const { core, during } = await createSlow(stack, 10, 1_000);
    assert.ok(await round(core));
    assert.deepEqual([...during], ['syncing syncing', 'apart stalled']);
    assert.equal(seen(core), 'synced synced');
  });

  test('is not waited for as long again because it brought it once it was not waited for any more', async () => {
    await using stack = new AsyncDisposableStack();
    const source = await createSource(stack, 5);
    const link = linkTo('liar', () => source);
    let lies = false;
    let during: string | undefined;
    const liar: PeerLink = {
      ...link,
      fetchMessages: (...args) => {
        during = core.rooms.sync.syncer.view().peers[0]!.state;
        return lies ? Promise.resolve([]) : link.fetchMessages(...args);
      },
    };
    const { core, time } = await createNode(stack, [liar]);
    assert.ok(await round(core));
    /** Minutes for which the liar is waited for. */
    const lie = async (n: number): Promise<number> => {
      lies = true;
      await source.send(signers.alice, note(n));
      let minutes = -1;
      do {
        assert.equal(await round(core), false);
        time.uptimeMs += MINUTE_MS;
        minutes++;
      } while (during !== 'stalled');
      lies = false;
      assert.ok(await round(core));
      assert.equal(seen(core), 'synced synced');
      return minutes;
    };
    const waited = [await lie(5), await lie(6), await lie(7)];
    assert.deepEqual(waited, [10, 2, 1]);
  });

  test('is waited for while it does bring messages, and once it was in step', async () => {
    await using stack = new AsyncDisposableStack();
    const messages = 40;
    const { core, time, during } = await createSlow(stack, messages, 90);
    // Each session ends after a few such answers, and says that it lacks the rest.
    const sizes: number[] = [];
    while (!(await round(core))) {
      assert.equal(seen(core), 'apart failing');
      sizes.push(core.rooms.sync.set.index.size);
    }
    assert.deepEqual(sizes, [17, 34]);
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

test('a peer that has little to bring waits for no transfer of another one', async () => {
  await using stack = new AsyncDisposableStack();
  const source = await createSource(stack, 5);
  const link = linkTo('honest', () => source);
  const reached = Promise.withResolvers<void>();
  const released = Promise.withResolvers<never>();
  released.promise.catch(() => {});
  const liar: PeerLink = {
    ...{ ...link, name: 'liar' },
    greet: async (ended) => ({ ...(await link.greet(ended)), messages: 1_000_000 }),
    fetchPage: () => {
      reached.resolve();
      return released.promise;
    },
  };
  const honest: PeerLink = { ...link, greet: (ended) => reached.promise.then(() => link.greet(ended)) };
  const { core } = await createNode(stack, [liar, honest]);
  const stop = new AbortController();
  const running = core.rooms.sync.syncer.run(stop.signal);
  try {
    await until('the honest one is in step', () => seen(core).endsWith(' synced'));
    assert.equal(seen(core), 'synced syncing synced');
  } finally {
    stop.abort();
    released.reject(new AppError('UPSTREAM_UNAVAILABLE', 'it is away'));
    await running;
  }
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

test('a peer that takes most of a minute for each answer is in step for as long again as its sessions take, and is told by that', async () => {
  await using stack = new AsyncDisposableStack();
  const source = await createSource(stack, 3);
  const link = linkTo('slow', () => source);
  const [beganMs, slow] = [Date.now(), { ms: 55_000 }];
  let passedMs = 0;
  const during: string[] = [];
  const late =
    <Given extends unknown[], T>(ask: (...given: Given) => Promise<T>) =>
    (...given: Given) => {
      passedMs += slow.ms;
      if (core.rooms.sync.syncer.view().peers[0]!.synced_ms !== null) during.push(seen(core));
      return ask(...given);
    };
  const core = stack.use(
    await createTestCore({
      ...{ now: () => beganMs + passedMs, uptime: () => passedMs },
      peers: [
        {
          ...{ ...link, greet: late(link.greet), fetchMessages: late(link.fetchMessages) },
          ...{ askRanges: late(link.askRanges), offer: late(link.offer) },
        },
      ],
    }),
  );
  const staleMs = 3 * 120_000;
  assert.ok(await round(core));
  const [{ session_ms: sessionMs } = assert.fail()] = core.rooms.sync.syncer.view().peers;
  assert.ok(sessionMs >= 2 * slow.ms, `${sessionMs} ms`);
  // Some two minutes and a half at most between two sessions, and the next one takes as long.
  passedMs += staleMs - 1;
  assert.ok(await round(core));
  assert.deepEqual(new Set(during), new Set(['synced synced']));
  passedMs += staleMs + core.rooms.sync.syncer.view().peers[0]!.session_ms + 1;
  assert.equal(
    seen(core),
    'apart failing',
    'one that does not answer any more is no peer to be in step with',
  );
});
