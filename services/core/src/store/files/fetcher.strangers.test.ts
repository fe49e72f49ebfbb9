import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { buildStoredMessage } from '@skerry/client';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { sha256Hex } from '@skerry/protocol';
import { createPeerFileSource } from '../../peers/sync/file-source.ts';
import { createTestCore, signers } from '../../testing/core.ts';
import { FileFetcher } from './fetcher.ts';
import type { FileSource } from './fetching/source.ts';

const { alice, bob } = signers;
const log = createLogger('test', 'silent');
const signal = new AbortController().signal;
const SECOND_MS = 1_000;
const MINUTES = 2;
const store = (hash: string) => ({ type: 'STORE', content: { item_type: 'storage', item_hash: hash } });
const textsOf = (count: number) => Array.from({ length: count }, (_, n) => `file ${n}`);

/** Has these files. */
function holderOf(texts: readonly string[]): FileSource & { asked: string[] } {
  const byName = new Map(texts.map((text) => [sha256Hex(text), text]));
  const asked: string[] = [];
  return {
    name: 'holder',
    handles: () => true,
    asked,
    open: async (name) => {
      asked.push(name);
      const text = byName.get(name);
      return text === undefined
        ? undefined
        : { stream: Readable.from([Buffer.from(text)]), contentType: 'text/plain' };
    },
  };
}

/** Claims to have everything, and gives a byte at a time. */
function dripping(sizeBytes?: number): FileSource & { streams: Readable[]; drip(): void } {
  const streams: Readable[] = [];
  return {
    name: 'dripping',
    handles: () => true,
    streams,
    drip: () => {
      for (const stream of streams) if (!stream.destroyed) stream.push('x');
    },
    open: async () => {
      const stream = new Readable({ read() {} });
      stream.push('x');
      streams.push(stream);
      return { stream, contentType: 'text/plain', sizeBytes };
    },
  };
}

test('files that nobody has take a few requests a minute of a peer, and one that somebody has comes beside them', async () => {
  let nowMs = Date.now();
  await using core = await createTestCore({ now: () => nowMs });
  for (const text of textsOf(200)) await core.send(alice, store(sha256Hex(text)));
  const holder = holderOf(['here']);
  const fetcher = new FileFetcher({ ...core.rooms, sources: [holder], log });
  const runFor = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      await fetcher.look(signal);
      await fetcher.idle();
      await core.rooms.pipeline.idle();
      nowMs += SECOND_MS;
    }
  };
  await runFor(60 * MINUTES);
  assert.ok(holder.asked.length <= 30 * (MINUTES + 1), `${holder.asked.length} requests`);
  assert.ok(new Set(holder.asked).size >= 12 * MINUTES, 'new ones do not wait for those that were in vain');
  await core.send(bob, store(sha256Hex('here')));
  await runFor(10);
  assert.equal(fetcher.counts.fetched, 1);
});

test('a peer that wants to be left alone is asked when it said, and what it did not say counts for nothing', async (t) => {
  let nowMs = Date.now();
  await using core = await createTestCore({ now: () => nowMs });
  const text = 'busy';
  let [asked, isBusy] = [0, true];
  const server = createServer((_request, response) => {
    asked++;
    if (isBusy) response.writeHead(429, { 'retry-after': '20' }).end('{}');
    else response.end(text);
  }).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const busy = createPeerFileSource(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const empty = holderOf([]);
  const sent = await core.send(alice, store(sha256Hex(text)));
  const fetcher = new FileFetcher({ ...core.rooms, sources: [busy, empty], log });
  const look = async () => {
    await fetcher.look(signal);
    await fetcher.idle();
    return [asked, empty.asked.length, fetcher.counts.failed];
  };
  assert.deepEqual(await look(), [1, 1, 0]);
  nowMs += 19 * SECOND_MS;
  assert.deepEqual(await look(), [1, 1, 0]);
  isBusy = false;
  nowMs += SECOND_MS;
  assert.deepEqual(await look(), [2, 1, 0]);
  await core.rooms.pipeline.idle();
  assert.equal((await core.get(`/messages/${sent.body.item_hash}/status`)).body.status, 'processed');
});

test('a peer that is busy for ever holds up none that others get only later', async () => {
  let nowMs = Date.now();
  await using core = await createTestCore({ now: () => nowMs });
  const restingFor = (restMs: number): FileSource => ({
    ...{ name: `busy for ${restMs}`, handles: () => true },
    open: async () => ({ restMs }),
  });
  const late = holderOf([]);
  await core.send(alice, store(sha256Hex('late')));
  const sources = [restingFor(SECOND_MS), restingFor(300 * SECOND_MS), late];
  const fetcher = new FileFetcher({ ...core.rooms, sources, log });
  for (let second = 0; second < 150; second++) {
    await fetcher.look(signal);
    await fetcher.idle();
    nowMs += SECOND_MS;
  }
  assert.ok(late.asked.length >= 2, `asked ${late.asked.length} times`);
});

test('a file that comes too slowly is asked of another peer; of the only one it may come slowly', async (t) => {
  await using core = await createTestCore();
  const [text] = textsOf(1) as [string];
  await core.send(alice, store(sha256Hex(text)));
  const slow = dripping();
  const alone = new FileFetcher({ ...core.rooms, sources: [slow], log });
  const both = new FileFetcher({ ...core.rooms, sources: [slow, holderOf([text])], random: () => 0, log });
  t.mock.timers.enable({ apis: ['setInterval'] });
  await alone.look(signal);
  await until('it has begun', () => slow.streams[0]);
  for (let minute = 0; minute < 20; minute++) {
    slow.drip();
    t.mock.timers.tick(60_000);
  }
  assert.equal(slow.streams[0]!.destroyed, false);
  slow.streams[0]!.destroy();
  await alone.idle();
  await both.look(signal);
  const fetched = () => {
    slow.drip();
    t.mock.timers.tick(60_000);
    return both.counts.fetched;
  };
  await until('it came from the other one', fetched, (count) => count === 1);
  assert.equal(slow.streams[1]!.destroyed, true);
});

test('a peer that sends just fast enough holds up no file that another has', async (t) => {
  await using core = await createTestCore({ uploadLimitBytes: 4 * 1024 * 1024 });
  const [text] = textsOf(1) as [string];
  await core.send(alice, store(sha256Hex(text)));
  const slow = dripping();
  const fetcher = new FileFetcher({
    ...{ ...core.rooms, log },
    sources: [slow, holderOf([text])],
    random: () => 0,
  });
  t.after(() => slow.streams[0]?.destroy());
  t.mock.timers.enable({ apis: ['setInterval'] });
  await fetcher.look(signal);
  const stream = await until('it has begun', () => slow.streams[0]);
  for (let minute = 1; minute <= 2; minute++) {
    stream!.push(Buffer.alloc(1024 * 1024));
    await until('it was taken', () => stream!.readableLength === 0);
    assert.equal(stream!.destroyed, false);
    t.mock.timers.tick(60_000);
  }
  const fetched = () => {
    slow.drip();
    return fetcher.counts.fetched;
  };
  await until('the other one brought it', fetched, (count) => count === 1);
  assert.equal(stream!.destroyed, true);
  await fetcher.idle();
});

test('a peer that sends slowly has half of the places, and others bring what they have meanwhile', async (t) => {
  await using core = await createTestCore();
  const texts = textsOf(10);
  for (const text of texts) await core.send(alice, store(sha256Hex(text)));
  const slow = dripping();
  const fetcher = new FileFetcher({
    ...{ ...core.rooms, log },
    sources: [slow, holderOf(texts)],
    random: () => 0,
  });
  const end = () => {
    for (const stream of slow.streams) stream.destroy();
  };
  t.after(end);
  const look = async () => {
    slow.drip();
    await fetcher.look(signal);
    return fetcher.counts.fetched;
  };
  await until('the others are here', look, (count) => count === 6);
  assert.equal(slow.streams.length, 4);
  end();
  await fetcher.idle();
  assert.equal(fetcher.counts.fetched, 10);
});

test('a file that says it is larger than any may be is refused before it comes', async () => {
  await using core = await createTestCore({ uploadLimitBytes: 1_000 });
  await core.send(alice, store(sha256Hex('huge')));
  const huge = dripping(1_001);
  const fetcher = new FileFetcher({ ...core.rooms, sources: [huge], log });
  await fetcher.look(signal);
  await fetcher.idle();
  const [stream] = huge.streams;
  assert.deepEqual([stream!.destroyed, stream!.readableDidRead], [true, false]);
});

test('what is here is asked of nobody, though a message hangs on it that lacks something else', async () => {
  let nowMs = Date.now();
  await using core = await createTestCore({ now: () => nowMs });
  const { files, pipeline } = core.rooms;
  const away = sha256Hex('away');
  const { body, content } = buildStoredMessage(store(away), alice);
  await core.post('/messages', body);
  await files.storeUnpinned(await files.receive(Readable.from([Buffer.from(content)])), 'application/json');
  await pipeline.idle();
  const holder = holderOf([content]);
  const fetcher = new FileFetcher({ ...core.rooms, sources: [holder], random: () => 0, log });
  for (let second = 0; second < 5; second++) {
    await fetcher.look(signal);
    await fetcher.idle();
    nowMs += SECOND_MS;
  }
  assert.deepEqual([...new Set(holder.asked)], [away]);
});
