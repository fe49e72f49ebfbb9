import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { buildStoredMessage, createSigner } from '@skerry/client';
import { createLogger } from '@skerry/kit';
import { sha256Hex } from '@skerry/protocol';
import { sql } from 'kysely';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import { FileFetcher } from './fetcher.ts';
import type { FileSource } from './fetching/source.ts';
import { MissedFiles } from './missed.ts';

const { alice, bob } = signers;
const log = createLogger('test', 'silent');
const signal = new AbortController().signal;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const CID = 'QmT78zSuBmuS4z925WZfrqQ1qHaJ56DQaTfyMUF7F8ff5o';
const store = (item_hash: string, item_type = 'storage') => ({
  type: 'STORE',
  content: { item_type, item_hash },
});

async function reject(core: TestCore): Promise<void> {
  await core.rooms.pipeline.expire();
  await core.rooms.pipeline.idle();
}

test('a file that was away for longer than its message waits is asked for later and later, and then the message is in force', async () => {
  let nowMs = Date.now();
  const now = () => nowMs;
  await using core = await createTestCore({ now });
  const text = 'late';
  const sent = await core.send(alice, store(sha256Hex(text)));
  const statusOf = async () => (await core.get(`/messages/${sent.body.item_hash}/status`)).body.status;
  nowMs += HOUR_MS;
  await reject(core);
  assert.equal(await statusOf(), 'rejected');
  const askedMs: number[] = [];
  let isThere = false;
  const source: FileSource = {
    name: 'peer',
    handles: () => true,
    open: async () => {
      askedMs.push(nowMs);
      return isThere ? { stream: Readable.from([Buffer.from(text)]), contentType: 'text/plain' } : undefined;
    },
  };
  const missed = new MissedFiles({ db: core.rooms.db, namedBy: 'hash', now, random: () => 0 });
  const fetcher = new FileFetcher({ ...core.rooms, sources: [source], missed, log });
  const look = async () => {
    await missed.round();
    await fetcher.look(signal);
    await fetcher.idle();
  };
  for (let minute = 0; minute < 24 * 60; minute += 5) {
    await look();
    nowMs += 5 * MINUTE_MS;
  }
  const pauses = askedMs.slice(1).map((ms, at) => (ms - askedMs[at]!) / MINUTE_MS);
  assert.deepEqual(pauses.slice(0, 7), [5, 10, 20, 40, 80, 160, 240]);
  assert.ok(pauses.slice(6).every((pause) => pause === 240));
  // A peer answers again.
  const before = askedMs.length;
  fetcher.wake();
  await look();
  assert.equal(askedMs.length, before + 1);
  isThere = true;
  nowMs += 5 * MINUTE_MS;
  await look();
  await core.rooms.pipeline.idle();
  assert.equal(await statusOf(), 'processed');
  assert.deepEqual(missed.names, []);
});

test('page by page, all files are found for which messages were rejected, and no others', async () => {
  let nowMs = Date.now();
  await using core = await createTestCore({ now: () => nowMs });
  const { db } = core.rooms;
  const timestamp = Math.floor(nowMs / 1000) - 100;
  const names = Array.from({ length: 7 }, (_, n) => sha256Hex(`${n}`));
  // All of one second, as anybody may write them.
  for (const name of names) await core.send(alice, { ...store(name), timestamp });
  const last = sha256Hex('last');
  await core.send(bob, { ...store(last), timestamp: timestamp - 1 });
  await core.send(bob, { ...store(CID, 'ipfs'), timestamp: timestamp - 2 });
  nowMs += HOUR_MS;
  await reject(core);
  await core.send(bob, store(sha256Hex('pending')));
  const find = async (namedBy: 'hash' | 'cid', examined: number) => {
    const missed = new MissedFiles({ db, namedBy, now: () => nowMs, examined });
    while (await missed.round());
    return missed.names;
  };
  for (const examined of [1, 2, 3, 8, 9, 100])
    assert.deepEqual([...(await find('hash', examined))].sort(), [...names, last].sort(), `${examined}`);
  assert.equal((await find('hash', 100)).indexOf(last) <= 1, true, 'senders take turns');
  assert.deepEqual(await find('cid', 4), [CID]);
});

test('while the disk is full nothing is looked for, and at once when it has room again', async () => {
  let nowMs = Date.now();
  const now = () => nowMs;
  await using core = await createTestCore({ now });
  const name = sha256Hex('nowhere');
  await core.send(alice, store(name));
  nowMs += HOUR_MS;
  await reject(core);
  const reserve = { hasRoom: true };
  const missed = new MissedFiles({ db: core.rooms.db, namedBy: 'hash', reserve, now });
  await missed.round();
  assert.deepEqual(missed.names, [name]);
  missed.note(name, false);
  reserve.hasRoom = false;
  await missed.round();
  assert.deepEqual(missed.names, []);
  reserve.hasRoom = true;
  await missed.round();
  assert.deepEqual(missed.names, [name]);
});

/** What a peer says is left of a message whose content was a file: it is looked for. @returns the file's name */
async function hearOfErased({ rooms }: TestCore, n: number): Promise<string> {
  const draft = { type: 'POST', content: { type: 'note', content: `erased ${n}` }, time: 1_700_000_000 };
  const { body, itemHash } = buildStoredMessage(draft, alice);
  const { item_type: _, ...message } = JSON.parse(body).message;
  const forgotten = {
    ...{ form: 'network', signed_sender: null, owner: alice.address, channel: null, subject: null },
    ...{ content_type: 'note', tags: [], noted_ms: 1_700_000_000_000, ...message },
  };
  const { peer } = rooms.intake;
  await peer.keep(await peer.read([Buffer.from(JSON.stringify({ forgotten }))]));
  await rooms.pipeline.idle();
  return itemHash;
}

test('after the clock was set back nothing rests until the time that it had, nor is overlooked until then', async () => {
  let nowMs = Date.now();
  const now = () => nowMs;
  await using core = await createTestCore({ now });
  const missed = new MissedFiles({ db: core.rooms.db, namedBy: 'hash', now, random: () => 0 });
  const first = await hearOfErased(core, 0);
  await missed.round();
  assert.deepEqual(missed.names, [first]);
  missed.note(first, false);
  await missed.round();
  assert.equal(missed.names.length, 0, 'it is asked for later');
  nowMs -= 2 * HOUR_MS;
  await missed.round();
  assert.deepEqual(missed.names, [first]);
  missed.note(first, false);
  for (let n = 1; n < 4; n++) {
    nowMs += MINUTE_MS;
    const next = await hearOfErased(core, n);
    await missed.round();
    assert.ok(missed.names.includes(next), `the one that came ${n} minutes after`);
    for (const name of missed.names) missed.note(name, false);
  }
});

/** A made-up hash each. */
const madeUp = (n: number) => store(sha256Hex(`made up ${n}`));

/** Asks for what is missed, in the order in which it is named, none of which anybody has. @returns how often until this name came */
async function askFor(missed: MissedFiles, wanted: string, atMost: number): Promise<number> {
  for (let asked = 1; asked <= atMost; asked++) {
    await missed.round();
    const [name] = missed.names;
    if (name === wanted) return asked;
    if (name !== undefined) missed.note(name, false);
  }
  return Number.POSITIVE_INFINITY;
}

test('whoever sends names that nobody has keeps nobody waiting: of one sender a few are asked for in a pass', async () => {
  let nowMs = Date.now();
  const now = () => nowMs;
  await using core = await createTestCore({ now });
  const timestamp = Math.floor(nowMs / 1000) - 1_000;
  const honest = sha256Hex('honest');
  await core.send(alice, { ...store(honest), timestamp });
  for (let n = 0; n < 120; n++) await core.send(bob, { ...madeUp(n), timestamp: timestamp + 1 + n });
  nowMs += HOUR_MS;
  await reject(core);
  const missed = new MissedFiles({ db: core.rooms.db, namedBy: 'hash', now, examined: 20 });
  assert.ok((await askFor(missed, honest, 130)) <= 30);
});

test('every second pass begins anywhere in time, whoever filled the one before, under however many keys', async () => {
  let nowMs = Date.now();
  const now = () => nowMs;
  await using core = await createTestCore({ now });
  const timestamp = Math.floor(nowMs / 1000) - 1_000;
  const honest = sha256Hex('honest');
  await core.send(alice, { ...store(honest), timestamp: timestamp + 1 });
  await core.send(bob, { ...madeUp(0), timestamp });
  for (let n = 1; n <= 120; n++) {
    const signer = createSigner(`0x${n.toString(16).padStart(64, '0')}`);
    await core.send(signer, { ...madeUp(n), timestamp: timestamp + 1 + n });
  }
  nowMs += HOUR_MS;
  await reject(core);
  const vainMax = { ofSender: 5, ofPass: 10 };
  // The first of seventeen sizes, which is all of the 121 seconds, and of them 120 back.
  const numbers = [0.9 / 17, 120 / 121];
  const random = () => numbers.shift() ?? 0;
  const missed = new MissedFiles({ db: core.rooms.db, namedBy: 'hash', now, random, examined: 20, vainMax });
  assert.equal(await askFor(missed, honest, 130), 11);
});

test('a file that several named waits for all of them', async () => {
  let nowMs = Date.now();
  const now = () => nowMs;
  await using core = await createTestCore({ now });
  const timestamp = Math.floor(nowMs / 1000) - 1_000;
  const both = sha256Hex('both');
  for (const signer of [alice, bob]) await core.send(signer, { ...store(both), timestamp });
  for (let n = 0; n < 8; n++) await core.send(bob, { ...madeUp(n), timestamp: timestamp + 1 + n });
  nowMs += HOUR_MS;
  await reject(core);
  const vainMax = { ofSender: 2, ofPass: 100 };
  const missed = new MissedFiles({ db: core.rooms.db, namedBy: 'hash', now, vainMax });
  await missed.round();
  for (const name of missed.names.filter((one) => one !== both).slice(0, 2)) missed.note(name, false);
  assert.deepEqual(missed.names, [both], 'all others are of one who has had his turns');
});

test('a file that is here is not missed, though the message that names it is rejected for another one', async () => {
  let nowMs = Date.now();
  const now = () => nowMs;
  await using core = await createTestCore({ now });
  const { db, files } = core.rooms;
  const away = sha256Hex('away');
  const { body, itemHash, content } = buildStoredMessage(store(away), alice);
  await core.post('/messages', body);
  // Its content comes later: the message hangs on both from then on.
  await files.storeUnpinned(await files.receive(Readable.from([Buffer.from(content)])), 'application/json');
  await core.rooms.pipeline.idle();
  const keys = await db.selectFrom('dependencies').select('key').orderBy('key').execute();
  assert.deepEqual(
    keys.map(({ key }) => key),
    [away, itemHash].map((name) => `file:${name}`).sort(),
  );
  nowMs += HOUR_MS;
  await reject(core);
  // Of IPFS alike.
  const hash = { hash: CID, size_bytes: 1, content_type: 'application/json' };
  await db.insertInto('files').values(hash).execute();
  await sql`insert into dependencies (item_hash, key) select item_hash, ${`file:${CID}`} from messages`.execute(
    db,
  );
  const find = async (namedBy: 'hash' | 'cid') => {
    const missed = new MissedFiles({ db, namedBy, now });
    await missed.round();
    return missed.names;
  };
  assert.deepEqual([await find('hash'), await find('cid')], [[away], []]);
});

test('a file that came is here only with the messages that hang on it in line, also where the database refuses that', async () => {
  let nowMs = Date.now();
  const now = () => nowMs;
  await using core = await createTestCore({ now });
  const { db, files, indexer, pipeline } = core.rooms;
  const text = 'late';
  const sent = await core.send(alice, store(sha256Hex(text)));
  nowMs += HOUR_MS;
  await reject(core);
  const come = async () =>
    files.storeUnpinned(await files.receive(Readable.from([Buffer.from(text)])), 'text/plain');
  await indexer.pool.query('alter table reconsider add constraint refused check (false)');
  await assert.rejects(come());
  const missed = new MissedFiles({ db, namedBy: 'hash', now });
  await missed.round();
  assert.deepEqual(missed.names, [sha256Hex(text)]);
  await indexer.pool.query('alter table reconsider drop constraint refused');
  await come();
  await pipeline.idle();
  assert.equal((await core.get(`/messages/${sent.body.item_hash}/status`)).body.status, 'processed');
});
