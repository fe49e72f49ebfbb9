import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { buildNetworkMessage, buildStoredMessage, type MessageDraft, signMessage } from '@skerry/client';
import { LIMITS, verifySubmission } from '@skerry/protocol';
import { sql } from 'kysely';
import { readDue } from '../notify/sockets/due.ts';
import { HOLDS_NOTHING } from '../state/lists/weight.ts';
import { createMessageReader } from '../state/messages/reader.ts';
import { viewOf } from '../state/messages/view.ts';
import { createTestCore, signers, type TestCore } from '../testing/core.ts';
import { acceptMessage } from './accept.ts';
import { PROCESSED } from './accepted.ts';

const { alice } = signers;
const T0 = 1_700_000_000;

/** Six bytes each, and three hundred where the database writes them. */
const HUGE = Array.from({ length: 1_000 }, () => 9e307);
const POST = { type: 'note', content: HUGE };

describe('contents whose numbers are far longer where they are written without exponents', () => {
  let core: TestCore;
  let sent = 0;
  before(async () => {
    core = await createTestCore();
  });
  after(() => core[Symbol.asyncDispose]());

  const envelope = (type: string, content: object) =>
    signMessage({ type, content, timestamp: T0, nonce: `${++sent}` } as MessageDraft, alice).body;
  const addFile = (text: string) =>
    core.post('/storage/add_file', Buffer.from(text), { 'content-type': 'application/octet-stream' });
  const stored = (content: Readonly<Record<string, unknown>>) =>
    buildStoredMessage({ type: 'POST', content, time: T0 + ++sent }, alice);
  async function look(hash: string) {
    await core.rooms.pipeline.idle();
    const { rows } = await sql<object>`
      select status, reason ->> 'code' as code, content from messages where item_hash = ${hash}`.execute(
      core.rooms.db,
    );
    return rows[0];
  }
  const REJECTED = { status: 'rejected', code: 'INVALID_CONTENT', content: null };

  /** As another node passes it on. @param noted when that says that it was there first, Unix seconds */
  async function passOn(body: string, noted = T0): Promise<void> {
    const { message } = JSON.parse(body);
    const { peer } = core.rooms.intake;
    const frames = await peer.read([Buffer.from(JSON.stringify({ message, noted_ms: noted * 1000 }))]);
    assert.equal((await peer.keep(frames)).taken, 1);
  }

  test('a client is refused them, in each form', async () => {
    const { status, body } = await core.post('/messages', envelope('POST', POST));
    assert.deepEqual([status, body.code], [400, 'INVALID_CONTENT']);
    assert.match(body.error, /write them as text/);
    const inline = buildNetworkMessage({ type: 'POST', content: POST, time: T0 }, alice);
    const file = stored(POST);
    await addFile(file.content);
    for (const one of [inline, file]) {
      assert.equal((await core.post('/messages', one.body)).status, 422);
      assert.equal(await look(one.itemHash), undefined);
    }
    const text = envelope('POST', { type: 'note', content: HUGE.map(String) });
    assert.equal((await core.post('/messages', text)).status, 200);
  });

  test('what nodes pass on is kept as rejected, without its content beside the text', async () => {
    const inline = buildNetworkMessage({ type: 'POST', content: POST, time: T0 + 1 }, alice);
    const file = stored(POST);
    await addFile(file.content);
    const late = stored(POST);
    for (const one of [inline, file, late]) await passOn(one.body);
    assert.equal((await core.get(`/messages/${late.itemHash}`)).body.status, 'pending');
    await addFile(late.content);
    for (const { itemHash } of [inline, file, late]) assert.deepEqual(await look(itemHash), REJECTED);
    const { body } = await core.get(`/messages/${inline.itemHash}`);
    assert.deepEqual(body.content.content, HUGE);
    const { body: listed } = await core.get(`/messages.json?msgStatuses=rejected&hashes=${inline.itemHash}`);
    assert.deepEqual(listed.messages[0].content.content, HUGE);

    // What it says was read: its owner may forget it with others, and it is judged by it again.
    const forget = envelope('FORGET', { hashes: [inline.itemHash] });
    assert.equal((await core.post('/messages', forget)).status, 200);
    await sql`insert into reconsider values (${inline.itemHash}), (${file.itemHash}) on conflict do nothing`.execute(
      core.rooms.db,
    );
    core.rooms.pipeline.resume();
    for (const { itemHash } of [inline, file]) assert.deepEqual(await look(itemHash), REJECTED);
  });

  test('a FORGET that names one whose content was a file holds, also where it was here before that file', async () => {
    const note = envelope('POST', { type: 'note', content: 1 });
    const noted = (await core.post('/messages', note)).body.item_hash;
    const [file, late] = [stored(POST), stored(POST)];
    await addFile(file.content);
    for (const one of [file, late]) await passOn(one.body);
    const hold = await core.post('/messages', envelope('FORGET', { hashes: [file.itemHash] }));
    assert.equal(hold.status, 200);
    const hashes = [noted, file.itemHash, late.itemHash];
    const waiting = await core.post('/messages', envelope('FORGET', { hashes }));
    assert.equal(waiting.body.status, 'pending');
    await addFile(late.content);
    const statusOf = async (hash: string) => (await core.get(`/messages/${hash}/status`)).body.status;
    await core.rooms.pipeline.idle();
    assert.deepEqual(await Promise.all([waiting.body.item_hash, noted].map(statusOf)), [
      'processed',
      'forgotten',
    ]);
    for (const { itemHash } of [file, late]) assert.deepEqual(await look(itemHash), REJECTED);
  });

  test('its verdict and its owner stay where it is dated otherwise, without its file', async () => {
    const { db, intake } = core.rooms;
    const { bob } = signers;
    const grant = buildNetworkMessage(
      {
        type: 'AGGREGATE',
        content: { key: 'security', content: { authorizations: [{ address: alice.address }] } },
        time: T0 - 10,
      },
      bob,
    );
    await passOn(grant.body);
    const file = stored({ ...POST, address: bob.address });
    await addFile(file.content);
    await passOn(file.body, T0 + 5_000);
    const read = () =>
      db.selectFrom('messages').selectAll().where('item_hash', '=', file.itemHash).executeTakeFirstOrThrow();
    const before = await read();
    assert.deepEqual([before.owner, before.status], [bob.address, 'rejected']);
    for (const [at, noted] of [
      [T0 + 6_000, T0 + 5_000],
      [T0 + 2_000, T0 + 2_000],
    ] as const) {
      await intake.block.date(await read(), at * 1000);
      const { settled_at_ms: _settled, ...row } = await read();
      const { settled_at_ms: _before, ...rest } = before;
      assert.deepEqual(row, { ...rest, noted_ms: noted * 1000 });
    }
  });

  test('what a release before had in force is taken back', async () => {
    const { pipeline, db } = core.rooms;
    const message = verifySubmission(
      Buffer.from(envelope('AGGREGATE', { key: 'huge', content: { a: HUGE, b: 1 } })),
      T0,
    );
    const countFields = async () =>
      (await sql`select from aggregate_entries where key = 'huge'`.execute(db)).rows.length;
    await pipeline.submit({ ...acceptMessage(message), message, decide: () => PROCESSED });
    assert.equal(await countFields(), 2);
    await sql`insert into reconsider values (${message.itemHash})`.execute(db);
    pipeline.resume();
    assert.deepEqual(await look(message.itemHash), REJECTED);
    assert.equal(await countFields(), 0);
  });

  test('what is accepted is not much longer where the database writes it', async () => {
    const most = Math.floor(LIMITS.grownNumberChars / 280);
    for (const content of [HUGE.slice(0, most), Array.from({ length: 40_000 }, () => 1e23)])
      assert.equal((await core.post('/messages', envelope('POST', { type: 'note', content }))).status, 200);
    const { rows } = await sql<{ more: number }>`
      select max(octet_length(content::text) - 6 * octet_length(source_text)) as more from messages`.execute(
      core.rooms.db,
    );
    assert.ok(rows[0]!.more <= LIMITS.grownNumberChars, String(rows[0]!.more));
  });

  test('of a text that was signed the content is not read beside it', async () => {
    const { reads, events, db } = core.rooms;
    const before = Number(await events.lastCursor());
    const content = { type: 'note', content: [1, 1.5e-7] };
    const { body } = await core.post('/messages', envelope('POST', content));
    const file = stored(content);
    await addFile(file.content);
    assert.equal((await core.post('/messages', file.body)).status, 200);
    const read = createMessageReader(reads);
    const due = await readDue(db, before, []);
    for (const [hash, isBeside] of [
      [body.item_hash, false],
      [file.itemHash, true],
    ] as const) {
      const { row } = (await read(hash, HOLDS_NOTHING))!;
      const told = due!.messages.find((one) => one.row.item_hash === hash)!;
      for (const one of [row, told.row]) {
        assert.equal(one.content !== null, isBeside);
        assert.deepEqual((viewOf(one).content as typeof content).content, content.content);
      }
    }
  });

  test('WebSockets are told of contents that are files by the size of these, and nothing is written out to find it', async () => {
    const { events, db } = core.rooms;
    const start = Number(await events.lastCursor());
    const files = Array.from({ length: 3 }, () => stored({ type: 'note', content: 1 }));
    for (const { body, content, itemHash } of files) {
      await addFile(content);
      assert.equal((await core.post('/messages', body)).status, 200);
      await db
        .updateTable('files')
        .set({ size_bytes: 5 * 1024 * 1024 })
        .where('hash', '=', itemHash)
        .execute();
    }
    const told: string[][] = [];
    let due = await readDue(db, start, []);
    for (; due; due = await readDue(db, due.seq, [])) told.push(due.messages.map(({ row }) => row.item_hash));
    assert.deepEqual(
      told.filter((some) => some.length > 0),
      files.map(({ itemHash }) => [itemHash]),
    );
  });
});
