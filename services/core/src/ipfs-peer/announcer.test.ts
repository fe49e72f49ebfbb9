import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import type { CID } from 'multiformats/cid';
import { Dag } from '../store/ipfs/testing/dags.ts';
import { Announcer } from './announcer.ts';

const HOUR_MS = 3_600_000;
const { signal } = new AbortController();

/** An announcer of one file, and what it tells the DHT. */
function createAnnouncer() {
  const cid = String(new Dag().put(Buffer.from('a file')));
  const told: string[] = [];
  const state = { nowMs: 0, isKept: true as boolean | undefined, isAway: false };
  const tell = (what: string) => async (of: CID) => {
    assert.equal(String(of), cid);
    told.push(what);
    if (state.isAway) throw new Error('the DHT does not answer');
  };
  const contentRouting = { provide: tell('provide'), cancelReprovide: tell('cancel') };
  const announcer = new Announcer({
    libp2p: { getPeers: () => ['a peer'], contentRouting } as never,
    pins: { readNew: async () => (told.length === 0 ? [cid] : []) },
    isKept: async () => state.isKept,
    everyMs: HOUR_MS,
    now: () => state.nowMs,
    log: createLogger('test', 'silent'),
  });
  const run = async () => {
    told.length = 0;
    await announcer.run(signal);
    return [...told];
  };
  return { state, run };
}

test('what is new is announced as soon as the process runs, and again when it is due', async () => {
  const { state, run } = createAnnouncer();
  assert.deepEqual(await run(), ['provide']);
  assert.deepEqual(await run(), []);
  state.nowMs = HOUR_MS;
  assert.deepEqual(await run(), ['provide']);
});

test('what the core node no longer keeps is withdrawn, once it says so', async () => {
  const { state, run } = createAnnouncer();
  state.isKept = false;
  assert.deepEqual(await run(), [], 'a message may be here before its file');
  state.isKept = true;
  // What fails may be half done.
  state.isAway = true;
  assert.deepEqual(await run(), ['provide']);
  state.isKept = undefined;
  assert.deepEqual(await run(), []);
  state.isKept = false;
  assert.deepEqual(await run(), ['cancel']);
  state.isAway = false;
  assert.deepEqual(await run(), ['cancel']);
  state.nowMs = HOUR_MS;
  state.isKept = true;
  assert.deepEqual(await run(), ['provide'], 'a message lists it again');
});
