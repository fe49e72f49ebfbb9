import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatBound } from '@skerry/protocol';
import { NO_TALLY, type PassedOn, type ReadFrame } from '../../intake/passed-on.ts';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import type { PeerLink } from './link.ts';
import { SetIndex } from './set-index.ts';
import { linkTo } from './testing/setup.ts';
import { transfer } from './transfer.ts';

const PAGES = 6;

/** A page for each message. */
function pageByPage(source: TestCore): PeerLink {
  const link = linkTo('full', () => source);
  const { index } = source.rooms.sync.set;
  const keys = Array.from({ length: index.size }, (_, at) => index.keyAt(at));
  const places = ['', ...keys.slice(1).map(({ time, id }) => formatBound({ time, prefix: id }))];
  return {
    ...link,
    fetchPage: async (place, signal) => {
      const { frames } = await link.fetchPage(place, signal);
      return { frames: frames.slice(0, 1), next: places[places.indexOf(place) + 1] ?? null };
    },
  };
}

/** What a transfer did so far. `keep` is each page's, when it may end. */
async function begin(stack: AsyncDisposableStack) {
  const full = stack.use(await createTestCore());
  for (let n = 0; n < PAGES; n++)
    await full.send(signers.alice, { type: 'POST', content: { type: 'note', content: { n } } });
  const { sync, intake } = stack.use(await createTestCore()).rooms;
  const done = { read: 0, keep: [] as PromiseWithResolvers<void>[], saved: [] as string[] };
  const source: PassedOn = {
    read: (frames, from) => {
      done.read++;
      return intake.peer.read(frames, from);
    },
    keep: async (frames) => {
      const turn = Promise.withResolvers<void>();
      done.keep.push(turn);
      await turn.promise;
      return intake.peer.keep(frames);
    },
  };
  const ended = transfer(pageByPage(full), {
    ...{ set: sync.set, source, place: '', signal: new AbortController().signal },
    declined: { has: () => false, note: () => {} } as never,
    isLater: () => false,
    isWaitedFor: () => false,
    uptime: () => 0,
    savePlace: async (place) => {
      done.saved.push(place);
    },
  });
  ended.catch(() => {});
  /** Until nothing more happens by itself. */
  const settle = async (isSettled: () => boolean) => {
    while (!isSettled()) await new Promise(setImmediate);
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  };
  return { done, ended, settle, set: sync.set };
}

test('while a page is written the next one waits, ready, and one more is read', async () => {
  await using stack = new AsyncDisposableStack();
  const { done, ended, settle, set } = await begin(stack);
  for (let written = 0; written < PAGES; written++) {
    const [handed, read] = [Math.min(written + 2, PAGES), Math.min(written + 3, PAGES)];
    await settle(() => done.keep.length >= handed && done.read >= read && done.saved.length >= written);
    assert.deepEqual([done.keep.length, done.read], [handed, read]);
    done.keep[written]!.resolve();
  }
  assert.equal((await ended).tally.taken, PAGES);
  assert.equal(set.index.size, PAGES);
  assert.equal(done.saved.length, PAGES - 1);
});

test('the place of a page is not saved where the page before it was not written', async () => {
  await using stack = new AsyncDisposableStack();
  const { done, ended, settle } = await begin(stack);
  await settle(() => done.keep.length === 2);
  done.keep[1]!.resolve();
  await settle(() => true);
  done.keep[0]!.reject(new Error('the database is away'));
  await assert.rejects(ended, { message: 'the database is away' });
  assert.deepEqual(done.saved, []);
});

test('a peer that brings much without end gives way to one that waits, after an hour', async () => {
  const [page, pageMs] = [Buffer.alloc(64 * 1024 * 1024), 150_000];
  const message = { form: 'envelope', itemHash: 'ab'.repeat(32), sender: '', channel: null, time: 1 };
  const read = [{ accepted: { message, tags: [] } }] as unknown as readonly ReadFrame[];
  let [pages, isWaitedFor] = [0, true];
  const fetchPage: PeerLink['fetchPage'] = async () => {
    pages++;
    const next = formatBound({ time: 1, prefix: Uint8Array.of(pages) });
    return { frames: [page], next: pages < 100 ? next : null };
  };
  const run = () => {
    pages = 0;
    let uptimeMs = 0;
    return transfer(
      { ...({} as PeerLink), fetchPage },
      {
        ...{
          set: { index: new SetIndex(), has: () => false },
          place: '',
          signal: new AbortController().signal,
        },
        source: {
          read: async () => {
            uptimeMs += pageMs;
            return [...read];
          },
          keep: async () => NO_TALLY,
        },
        declined: { has: () => false, note: () => {} } as never,
        isLater: () => false,
        isWaitedFor: () => isWaitedFor,
        uptime: () => uptimeMs,
        savePlace: async () => {},
      },
    );
  };
  assert.equal((await run()).isEnded, false);
  // One more is on its way.
  assert.equal(pages, 3_600_000 / pageMs + 1);
  isWaitedFor = false;
  assert.ok((await run()).isEnded);
  assert.equal(pages, 100);
});

test('the first page is written in parts, so that writing begins early; its place is saved with the last of them', async () => {
  const message = { form: 'envelope', itemHash: 'ab'.repeat(32), sender: '', channel: null, time: 1 };
  const second = formatBound({ time: 1, prefix: Uint8Array.of(1) });
  const did: (number | string)[] = [];
  const fetchPage: PeerLink['fetchPage'] = async (place) => ({
    frames: Array.from({ length: 1_200 }, () => Buffer.from('{}')),
    next: place === second ? null : second,
  });
  const { isEnded } = await transfer(
    { ...({} as PeerLink), fetchPage },
    {
      ...{
        set: { index: new SetIndex(), has: () => false },
        place: '',
        signal: new AbortController().signal,
      },
      source: {
        read: async (frames) =>
          frames.map(() => ({ accepted: { message, tags: [] } }) as unknown as ReadFrame),
        keep: async ({ length }) => {
          did.push(length);
          return NO_TALLY;
        },
      },
      declined: { has: () => false, note: () => {} } as never,
      isLater: () => false,
      isWaitedFor: () => false,
      uptime: () => 0,
      savePlace: async () => void did.push('saved'),
    },
  );
  assert.ok(isEnded);
  assert.deepEqual(
    did.filter((one) => one !== 'saved'),
    [500, 500, 200, 1_200],
  );
  assert.ok(did.indexOf('saved') > did.indexOf(200));
});
