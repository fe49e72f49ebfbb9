import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { sha256Hex } from '@skerry/protocol';
import { createPeerFileSource } from '../../peers/sync/file-source.ts';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import { type FetcherOptions, FileFetcher } from './fetcher.ts';
import type { FileSource } from './fetching/source.ts';
import { MissedFiles } from './missed.ts';

const { alice, bob } = signers;
const log = createLogger('test', 'silent');
const { signal } = new AbortController();
const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;
const MADE_UP = 100;
const TEXT = 'somebody has it';
const store = (hash: string) => ({ type: 'STORE', content: { item_type: 'storage', item_hash: hash } });

interface Peer extends FileSource {
  /** Files that it was asked for by themselves. */
  readonly asked: string[];
  /** How many names each question had. */
  readonly questions: number[];
}

/** @param says to have a file */
function peerWith(text: string | undefined, says: (name: string) => boolean): Peer {
  const asked: string[] = [];
  const questions: number[] = [];
  return {
    ...{ name: `peer with ${text}`, handles: () => true, asked, questions },
    open: async (name) => {
      asked.push(name);
      return text !== undefined && name === sha256Hex(text)
        ? { stream: Readable.from([Buffer.from(text)]), contentType: 'text/plain' }
        : undefined;
    },
    findHeld: async (names) => {
      questions.push(names.length);
      return { held: names.filter(says) };
    },
  };
}

const holderOf = (text: string) => peerWith(text, (name) => name === sha256Hex(text));

async function sendMadeUp(core: TestCore): Promise<void> {
  for (let n = 0; n < MADE_UP; n++) await core.send(alice, store(sha256Hex(`made up ${n}`)));
}

/** The virtual clock of a test, a fetcher by it, and so many seconds of its loop. */
function createRun(core: TestCore, clock: { nowMs: number }, options: Pick<FetcherOptions, 'sources'>) {
  const now = () => clock.nowMs;
  const swept = () => new MissedFiles({ db: core.rooms.db, namedBy: 'hash', now, random: () => 0 });
  const fetcher = new FileFetcher({ ...core.rooms, ...options, swept, now, random: () => 0, log });
  const runFor = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      await fetcher.look(signal);
      await fetcher.idle();
      await core.rooms.pipeline.idle();
      clock.nowMs += SECOND_MS;
    }
  };
  return { fetcher, runFor };
}

test('a file that a peer has comes soon, however many names that nobody has wait before it', async () => {
  const clock = { nowMs: Date.now() };
  await using core = await createTestCore({ now: () => clock.nowMs });
  await sendMadeUp(core);
  await core.send(alice, store(sha256Hex(TEXT)));
  const holder = holderOf(TEXT);
  const { fetcher, runFor } = createRun(core, clock, { sources: [holder] });
  await runFor(15);
  assert.equal(fetcher.counts.fetched, 1);
  assert.ok(holder.asked.length <= 30, `${holder.asked.length} requests`);
  // Nothing that waits is asked about again at once.
  await runFor(60);
  const names = holder.questions.reduce((sum, count) => sum + count, 0);
  assert.ok(names <= MADE_UP + 1, `${names} names`);
});

test('a missed file that a peer has comes soon, however many names that nobody has were rejected beside it', async () => {
  const clock = { nowMs: Date.now() };
  await using core = await createTestCore({ now: () => clock.nowMs });
  const { body } = await core.send(alice, store(sha256Hex(TEXT)));
  clock.nowMs += SECOND_MS;
  await sendMadeUp(core);
  clock.nowMs += HOUR_MS;
  await core.rooms.pipeline.expire();
  await core.rooms.pipeline.idle();
  const holder = holderOf(TEXT);
  const { runFor } = createRun(core, clock, { sources: [peerWith(undefined, () => false), holder] });
  await runFor(15);
  assert.equal((await core.get(`/messages/${body.item_hash}/status`)).body.status, 'processed');
  assert.deepEqual(holder.asked, [sha256Hex(TEXT)]);
});

test('a peer that says to have everything is asked in vain ten times a minute for it, and others bring what they have', async () => {
  const clock = { nowMs: Date.now() };
  await using core = await createTestCore({ now: () => clock.nowMs });
  await sendMadeUp(core);
  await core.send(bob, store(sha256Hex(TEXT)));
  clock.nowMs += HOUR_MS;
  await core.rooms.pipeline.expire();
  await core.rooms.pipeline.idle();
  const liar = peerWith(undefined, () => true);
  const holder = holderOf(TEXT);
  const { fetcher, runFor } = createRun(core, clock, { sources: [liar, holder] });
  await runFor(30);
  assert.equal(fetcher.counts.fetched, 1);
  assert.deepEqual(holder.asked, [sha256Hex(TEXT)]);
  assert.ok(liar.asked.length <= 15, `${liar.asked.length} requests`);
});

test('a peer of an older version, which does not know the question, is asked for each file', async (t) => {
  await using core = await createTestCore();
  await core.send(alice, store(sha256Hex(TEXT)));
  const server = createServer((request, response) => {
    if (request.url === `/api/v0/storage/${sha256Hex(TEXT)}`) response.end(TEXT);
    else response.writeHead(404).end('{"code":"ROUTE_NOT_FOUND"}');
  }).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const old = createPeerFileSource(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const { fetcher, runFor } = createRun(core, { nowMs: Date.now() }, { sources: [old] });
  await runFor(1);
  assert.equal(fetcher.counts.fetched, 1);
});
