import assert from 'node:assert/strict';
import { test } from 'node:test';
import { signMessage } from '@skerry/client';
import { END, type Range, type ShortKey, START, sha256Hex } from '@skerry/protocol';
import { createTestCore, signers } from '../../testing/core.ts';
import type { PeerLink } from './link.ts';
import { linkTo } from './testing/setup.ts';

const { alice, bob } = signers;
const signal = new AbortController().signal;
const INT64_MAX = 2 ** 63;
/** Unix seconds. The last ones that are nanoseconds of 64 bits, and what is beyond. */
const TIMES = [0, 1e-9, 9_223_372_036, 9_223_372_036.5, INT64_MAX, -1, -INT64_MAX, 1.7e308, -1.7e308];
const NOTED = [0, Number.MAX_SAFE_INTEGER, INT64_MAX, -1];

const skeletonOf = (time: number, notedMs: number | null, name: string) => ({
  ...{ form: 'envelope', item_hash: sha256Hex(name), chain: 'ETH', sender: bob.address, signed_sender: null },
  ...{ owner: bob.address, type: 'POST', channel: null, time, content_type: 'note', subject: null },
  ...{ tags: [], signature: '0x', noted_ms: notedMs },
});

/** A peer that lists messages at the ends of all time, sends what is left of some, and has a clock to match. */
function lieOf(link: PeerLink, clock: { timeMs: number; correctionMs: number }): PeerLink {
  const skeletons = TIMES.flatMap((time) =>
    [...NOTED, null].map((noted) => skeletonOf(time, noted, `${time} ${noted}`)),
  );
  const keyOf = ({ time, item_hash: hash }: (typeof skeletons)[number]): ShortKey => ({
    time,
    id: `${hash.slice(0, 32)}00000000`,
  });
  const list = (question: readonly Range[]): Range[] =>
    question.slice(0, 1).map(({ lower, upper }) => ({
      ...{ kind: 'keys', lower, upper },
      keys: skeletons.map(keyOf),
    }));
  return {
    ...link,
    greet: async (given) => ({ ...(await link.greet(given)), messages: Number.MAX_SAFE_INTEGER, clock }),
    askRanges: async (question) => ({ answer: list(question), sizeBytes: 1 }),
    fetchMessages: async (keys) => {
      const asked = new Set(keys.map(({ id }) => id.slice(0, 32)));
      const some = skeletons.filter(({ item_hash: hash }) => asked.has(hash.slice(0, 32)));
      return some.map((one) => Buffer.from(JSON.stringify({ forgotten: one })));
    },
    fetchPage: async (place) => ({
      frames: skeletons.map((one) => Buffer.from(JSON.stringify({ forgotten: one }))),
      next: place === '' ? `7fefffffffffffff${'f'.repeat(64)}` : null,
    }),
  };
}

for (const timeMs of [Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER, 0])
  test(`a peer with times at the ends of all time, and a clock of ${timeMs}, stops and moves nobody`, async () => {
    await using stack = new AsyncDisposableStack();
    const honest = stack.use(await createTestCore());
    const peers = [
      lieOf(
        linkTo('liar', () => honest),
        { timeMs, correctionMs: -timeMs },
      ),
      linkTo('honest', () => honest),
    ];
    const core = stack.use(await createTestCore({ peers }));
    const { body, itemHash } = signMessage({ type: 'POST', content: { type: 'note', content: 'x' } }, alice);
    assert.equal((await honest.post('/messages', body)).status, 200);
    for (let round = 0; round < 3; round++) {
      await core.rooms.sync.syncer.round(signal);
      await core.rooms.pipeline.idle();
    }
    const { body: view } = await core.get('/sync/status');
    assert.deepEqual([view.state, view.clock.correction_ms, view.peers[1].state], ['synced', 0, 'synced']);
    assert.equal((await core.get(`/messages/${itemHash}`)).body.status, 'processed');
    for (const path of [
      '/messages?limit=100',
      '/messages.json?sortOrder=1',
      '/events?cursor=0',
      '/state/digest',
    ])
      assert.equal((await core.get(path)).status, 200, path);
    // What the liar lists is of no set that both have, and all that is kept can be read again.
    await core.rooms.sync.load();
    const answer = await linkTo('own', () => core).askRanges(
      [{ kind: 'list', lower: START, upper: END }],
      signal,
    );
    assert.ok(answer.answer.length > 0);
    assert.equal(
      (await core.send(alice, { type: 'POST', content: { type: 'note', content: 'y' } })).status,
      200,
    );
  });
