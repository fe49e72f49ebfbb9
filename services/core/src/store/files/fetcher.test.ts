import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, test } from 'node:test';
import { createLogger, listen } from '@skerry/kit';
import { CREDIT_CHANNEL, CREDIT_POST, sha256Hex } from '@skerry/protocol';
import { createPeerFileSource } from '../../peers/sync/file-source.ts';
import { createTestCore, signers } from '../../testing/core.ts';
import { FileFetcher } from './fetcher.ts';
import type { FileSource } from './fetching/source.ts';

const log = createLogger('test', 'silent');
const signal = new AbortController().signal;
const store = (hash: string) => ({ type: 'STORE', content: { item_type: 'storage', item_hash: hash } });

function sourceOf(
  name: string,
  bytes: (file: string) => string | undefined,
): FileSource & { asked: number; wrong: number } {
  const source = {
    name,
    asked: 0,
    wrong: 0,
    handles: () => true,
    async open(file: string) {
      source.asked++;
      const text = bytes(file);
      return text === undefined
        ? undefined
        : { stream: Readable.from([Buffer.from(text)]), contentType: 'text/plain' };
    },
    onWrongBytes: () => {
      source.wrong++;
    },
  };
  return source;
}

describe('files that messages lack', () => {
  test('come from another node, and their messages are in force', async () => {
    await using holder = await createTestCore();
    const text = 'a file';
    const hash = sha256Hex(text);
    await holder.rooms.files.storeUnpinned(
      await holder.rooms.files.receive(Readable.from([Buffer.from(text)])),
      'text/x-own',
    );
    const url = await listen(holder.api, '127.0.0.1', 0);
    const opened = await createPeerFileSource(url).open(hash, signal);
    assert.ok(opened && 'stream' in opened);
    assert.equal(opened.sizeBytes, text.length);
    opened.stream.destroy();
    await using core = await createTestCore();
    const sent = await core.send(signers.alice, store(hash));
    assert.equal(sent.status, 202);
    const fetcher = new FileFetcher({ ...core.rooms, sources: [createPeerFileSource(url)], log });
    await fetcher.look(signal);
    await fetcher.idle();
    await core.rooms.pipeline.idle();
    assert.equal((await core.get(`/messages/${sent.body.item_hash}/status`)).body.status, 'processed');
    const file = await core.get(`/storage/${hash}`);
    assert.deepEqual([String(file.body), file.headers['content-type']], [text, 'text/x-own']);
    assert.deepEqual([fetcher.counts.fetched, fetcher.counts.failed], [1, 0]);
  });

  test('credit that comes after a file has the message in force, as credit that came before it', async () => {
    await using core = await createTestCore({ creditEnforcement: true });
    const [text, hash] = ['paid later', sha256Hex('paid later')];
    const fetcher = new FileFetcher({
      ...core.rooms,
      sources: [sourceOf('peer', () => text)],
      random: () => 0,
      log,
    });
    const sent = await core.send(signers.alice, store(hash));
    const statusOf = async () => (await core.get(`/messages/${sent.body.item_hash}/status`)).body;
    await fetcher.look(signal);
    await fetcher.idle();
    await core.rooms.pipeline.idle();
    const refused = await statusOf();
    assert.deepEqual([refused.status, refused.reason.code], ['rejected', 'CREDIT_INSUFFICIENT']);
    const distribution = { credits: [{ address: signers.alice.address, amount: 1, ref: 'r' }] };
    const content = { type: CREDIT_POST.distribution, content: { distribution } };
    const timestamp = Math.floor(Date.now() / 1000) - 500;
    const given = await core.send(signers.credit, {
      type: 'POST',
      channel: CREDIT_CHANNEL,
      content,
      timestamp,
    });
    assert.equal(given.status, 200);
    await core.rooms.pipeline.idle();
    assert.equal((await statusOf()).status, 'processed');
  });

  test('wrong bytes are kept by nobody; another source is asked, and later the same ones again', async () => {
    let nowMs = Date.now();
    await using core = await createTestCore({ now: () => nowMs, pendingHorizonMs: 3_600_000 });
    const [text, hash] = ['right', sha256Hex('right')];
    let isThere = false;
    const liar = sourceOf('liar', () => 'wrong');
    const late = sourceOf('late', () => (isThere ? text : undefined));
    const sent = await core.send(signers.alice, store(hash));
    const fetcher = new FileFetcher({
      ...core.rooms,
      sources: [liar, late],
      now: () => nowMs,
      random: () => 0,
      log,
    });
    const look = async () => {
      await fetcher.look(signal);
      await fetcher.idle();
    };
    await look();
    assert.deepEqual([liar.wrong, late.asked], [1, 1]);
    await look();
    assert.equal(late.asked, 1, 'not before its time');
    isThere = true;
    nowMs += 10_000;
    await look();
    await core.rooms.pipeline.idle();
    assert.equal((await core.get(`/messages/${sent.body.item_hash}/status`)).body.status, 'processed');
    assert.equal((await core.get(`/storage/${sha256Hex('wrong')}`)).status, 404);
    await look();
    assert.equal(late.asked, 2, 'nothing is lacking any more');
  });

  test('a source is blamed once for a file of which it has other bytes, and for each file', async () => {
    let nowMs = Date.now();
    await using core = await createTestCore({ now: () => nowMs, pendingHorizonMs: 3_600_000 });
    const damaged = sourceOf('damaged', () => 'wrong');
    const fetcher = new FileFetcher({ ...core.rooms, sources: [damaged], now: () => nowMs, log });
    const lookThrice = async () => {
      for (let turn = 0; turn < 3; turn++) {
        await fetcher.look(signal);
        await fetcher.idle();
        nowMs += 600_000;
      }
    };
    await core.send(signers.alice, store(sha256Hex('right')));
    await lookThrice();
    assert.deepEqual([damaged.asked, damaged.wrong], [3, 1]);
    await core.send(signers.alice, store(sha256Hex('another')));
    await lookThrice();
    assert.deepEqual([damaged.asked, damaged.wrong], [9, 2]);
  });

  test('a source that never ends holds nothing else up', async () => {
    await using core = await createTestCore();
    const stuck = new AbortController();
    const hashes = ['a', 'b', 'c'].map(sha256Hex);
    for (const hash of hashes) await core.send(signers.alice, store(hash));
    const slow: FileSource = {
      name: 'slow',
      handles: (name) => name === hashes[0],
      open: (_, ended) =>
        new Promise((_resolve, reject) => ended.addEventListener('abort', () => reject(ended.reason))),
    };
    const quick = sourceOf('quick', (name) => ['b', 'c'].find((text) => sha256Hex(text) === name));
    const fetcher = new FileFetcher({ ...core.rooms, sources: [slow, quick], random: () => 0, log });
    await fetcher.look(stuck.signal);
    while (fetcher.counts.fetched < 2) await new Promise((done) => setImmediate(done));
    await core.rooms.pipeline.idle();
    assert.equal((await core.get('/messages?types=STORE')).body.pagination.total, 2);
    stuck.abort();
    await fetcher.idle();
  });
});
