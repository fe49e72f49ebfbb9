import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { signMessage } from '@skerry/client';
import { createWrite } from '@skerry/database';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { AppError, sha256Hex } from '@skerry/protocol';
import { CID } from 'multiformats/cid';
import { sha256 } from 'multiformats/hashes/sha2';
import type { Intake } from '../../intake/intake.ts';
import { TestDaemon } from '../../store/ipfs/testing/daemon.ts';
import { SCHEMA_VERSION } from '../../store/schema-version.ts';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import { archiveOf, syncContentOf } from './archive.ts';
import { listOpen, notePacked } from './packed.ts';
import { Processor, type ProcessorOptions } from './processor.ts';
import type { AnchorSettings } from './settings.ts';
import { insertEvent } from './store.ts';

const NETWORK = 'somewhere';

const RAW = 0x55;

async function cidOf(text: string): Promise<{ cid: string; bytes: Uint8Array }> {
  const bytes = Buffer.from(text);
  return { cid: CID.createV1(RAW, await sha256.digest(bytes)).toString(), bytes };
}

function openProcessor(core: TestCore, failing: Partial<ProcessorOptions> = {}): Processor {
  const settings = {
    network: { name: NETWORK },
    chain: 'ETH',
    archiveHorizonMs: 604_800_000,
  } as unknown as AnchorSettings;
  return new Processor({
    db: core.rooms.db,
    write: createWrite(core.rooms.indexer.pool),
    files: core.rooms.ipfs,
    intake: core.rooms.intake,
    settings,
    now: Date.now,
    random: () => 0,
    signal: new AbortController().signal,
    log: createLogger('core', 'fatal'),
    ...failing,
  });
}

/** Of a contract's event that names an archive. */
const eventOf = (cid: string, at: number) => ({
  ...{ blockNumber: at, logIndex: 0, transactionHash: `0x${at}` },
  ...{ blockTime: Math.floor(Date.now() / 1000), network: NETWORK, emitter: '0x00' },
  ...{ content: syncContentOf(cid), cid, refusal: undefined },
});

test('F2: archives that cannot be had are put off, and hold up none of those behind them', async () => {
  await using stack = new AsyncDisposableStack();
  const daemon = stack.use(await TestDaemon.start());
  const core = stack.use(await createTestCore({ ipfs: { gateways: [daemon.url] } }));
  const { db } = core.rooms;
  const lost = await Promise.all(['nobody', 'has', 'these', 'archives'].map(cidOf));
  const good = await cidOf(archiveOf([]).toString());
  daemon.put(good.bytes);
  for (const [at, { cid }] of [...lost, good].entries())
    await insertEvent(db, eventOf(cid, at + 1), Date.now());
  const processor = openProcessor(core);
  const stateOf = async () =>
    db.selectFrom('anchor_events').select(['state', 'attempts', 'due_ms']).orderBy('block_number').execute();
  const round = async () => {
    await processor.round();
    return stateOf();
  };
  await until('the last one is read', round, (states) => states.at(-1)!.state === 'processed');
  for (const { state, attempts, due_ms } of (await stateOf()).slice(0, -1)) {
    assert.equal(state, 'waiting');
    assert.ok(attempts >= 1 && Number.isInteger(due_ms), `${attempts} attempts, due at ${due_ms}`);
  }
});

test('an archive that this node cannot write now is read later: a newer release beside it made it refused for good', async () => {
  await using stack = new AsyncDisposableStack();
  const daemon = stack.use(await TestDaemon.start());
  const core = stack.use(await createTestCore({ ipfs: { gateways: [daemon.url] } }));
  const { db } = core.rooms;
  const draft = { type: 'POST', content: { type: 'note', content: 'archived' } };
  const { message, signature, address } = JSON.parse(signMessage(draft, signers.alice).body);
  const archived = JSON.stringify({ signed_text: JSON.stringify(message), signature, address });
  const { cid, bytes } = await cidOf(archiveOf([archived]).toString());
  daemon.put(bytes);
  const dueMs = Date.now();
  await insertEvent(db, eventOf(cid, 1), dueMs);
  const migrateTo = (version: number) =>
    db.updateTable('event_counter').set({ schema_version: version }).execute();
  const round = async () => {
    await openProcessor(core).round();
    return db.selectFrom('anchor_events').select(['state', 'messages']).executeTakeFirstOrThrow();
  };
  await migrateTo(SCHEMA_VERSION + 1);
  assert.equal((await round()).state, 'waiting');
  await migrateTo(SCHEMA_VERSION);
  await db.updateTable('anchor_events').set({ due_ms: dueMs }).execute();
  assert.deepEqual(await round(), { state: 'processed', messages: 1 });
});

/** Of a POST, as an archive has it. */
function archivedPost(content: string): { readonly text: string; readonly itemHash: string } {
  const { body, itemHash } = signMessage({ type: 'POST', content: { type: 'note', content } }, signers.alice);
  const { message, signature, address } = JSON.parse(body);
  return {
    itemHash,
    text: JSON.stringify({ signed_text: JSON.stringify(message), signature, address }),
  };
}

test('a message that this node cannot take now holds up none of the others of its archive', async () => {
  await using stack = new AsyncDisposableStack();
  const daemon = stack.use(await TestDaemon.start());
  const core = stack.use(await createTestCore({ ipfs: { gateways: [daemon.url] } }));
  const { db, intake } = core.rooms;
  const posts = [archivedPost('at once'), archivedPost('a day later')];
  const { cid, bytes } = await cidOf(archiveOf(posts.map(({ text }) => text)).toString());
  daemon.put(bytes);
  await insertEvent(db, eventOf(cid, 1), Date.now());
  await notePacked(db, NETWORK, { after: 0, seq: 1 }, { cid, messages: 2 }, Date.now());
  const submit: Intake['archive']['submit'] = async (body) => {
    if (Buffer.from(body).includes('a day later')) throw new AppError('OVERLOADED', 'so it goes');
    return intake.archive.submit(body);
  };
  const failing = openProcessor(core, { intake: { ...intake, archive: { ...intake.archive, submit } } });
  const look = async () => {
    const { state, reason } = await db.selectFrom('anchor_events').selectAll().executeTakeFirstOrThrow();
    const confirmed = await db.selectFrom('confirmations').select('item_hash').execute();
    return { state, code: reason?.code, confirmed: confirmed.map((row) => row.item_hash).toSorted() };
  };
  await failing.round();
  const [first, ...rest] = posts.map(({ itemHash }) => itemHash);
  assert.deepEqual(await look(), { state: 'waiting', code: 'OVERLOADED', confirmed: [first] });
  assert.equal(failing.invalid, 0);
  assert.equal((await listOpen(db, NETWORK))[0]?.isRead, true, 'the next archive may be packed');
  await db.updateTable('anchor_events').set({ due_ms: 1, seen_ms: 1, attempts: 1e6 }).execute();
  const write = () => Promise.reject(new AppError('STORAGE_UNAVAILABLE', 'so it goes'));
  await openProcessor(core, { write }).round();
  assert.equal((await look()).state, 'waiting', 'what is at hand is not given up');
  await db.updateTable('anchor_events').set({ due_ms: 1 }).execute();
  await openProcessor(core).round();
  const all = [first!, ...rest].toSorted();
  assert.deepEqual(await look(), { state: 'processed', code: undefined, confirmed: all });
});

test('a message whose hash the database cannot hold is invalid, and holds up none of the others of its archive', async () => {
  await using core = await createTestCore();
  const { db } = core.rooms;
  const { text, itemHash } = archivedPost('good');
  const content = archiveOf([text, '{"item_hash":"\\u0000"}']).toString();
  await insertEvent(db, { ...eventOf('', 1), cid: null, content }, Date.now());
  const processor = openProcessor(core);
  await processor.round();
  const { state, messages } = await db.selectFrom('anchor_events').selectAll().executeTakeFirstOrThrow();
  assert.deepEqual(
    { state, messages, invalid: processor.invalid },
    { state: 'processed', messages: 1, invalid: 1 },
  );
  const confirmed = await db.selectFrom('confirmations').select('item_hash').execute();
  assert.deepEqual(confirmed, [{ item_hash: itemHash }]);
});

test('an archive at hand that always fails in a way that nobody foresaw is given up after the horizon', async () => {
  await using core = await createTestCore();
  const { db } = core.rooms;
  const event = { ...eventOf('', 1), cid: null, content: archiveOf([]).toString() };
  await insertEvent(db, event, Date.now());
  const write = () => Promise.reject(new TypeError('so it goes'));
  const look = async () => {
    await openProcessor(core, { write }).round();
    const { state, reason } = await db.selectFrom('anchor_events').selectAll().executeTakeFirstOrThrow();
    return [state, reason?.code];
  };
  assert.deepEqual(await look(), ['waiting', 'INTERNAL']);
  await db.updateTable('anchor_events').set({ due_ms: 1, seen_ms: 1, attempts: 1e6 }).execute();
  assert.deepEqual(await look(), ['refused', 'ARCHIVE_UNAVAILABLE']);
});

test('of an archive no more contents that are files are in memory at once than a few', async () => {
  await using core = await createTestCore();
  const { db, intake } = core.rooms;
  const messages: string[] = [];
  for (const n of [1, 2, 3, 4]) {
    const { address } = signers.alice;
    const content = { address, time: n, type: 'note', content: 'x'.repeat(3_000_000) };
    const bytes = Buffer.from(JSON.stringify(content));
    const blob = await core.blobs.receive(Readable.from([bytes]), 4_000_000);
    await core.rooms.files.storeUnpinned(blob, 'text/plain');
    await blob.discard();
    const itemHash = sha256Hex(bytes);
    const message = {
      ...{ chain: 'ETH', sender: address, type: 'POST', time: n, item_type: 'storage', item_hash: itemHash },
      signature: signers.alice.sign(`ETH\n${address}\nPOST\n${itemHash}`),
    };
    messages.push(JSON.stringify(message));
  }
  const event = { ...eventOf('', 1), cid: null, content: archiveOf(messages).toString() };
  await insertEvent(db, event, Date.now());
  let [now, most] = [0, 0];
  const submit: Intake['archive']['submit'] = async (body) => {
    most = Math.max(most, ++now);
    try {
      return await intake.archive.submit(body);
    } finally {
      now--;
    }
  };
  await openProcessor(core, { intake: { ...intake, archive: { ...intake.archive, submit } } }).round();
  assert.equal(most, 2);
  const rows = await db.selectFrom('messages').select('status').execute();
  assert.deepEqual(
    rows.map(({ status }) => status),
    ['processed', 'processed', 'processed', 'processed'],
  );
  assert.equal((await db.selectFrom('confirmations').selectAll().execute()).length, 4);
});
