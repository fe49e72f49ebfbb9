import assert from 'node:assert/strict';
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { type MessageDraft, type Signer, signMessage } from '@skerry/client';
import type { Database } from '@skerry/database';
import { migrate } from '@skerry/database';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { itemHashOf, nodeIdOf, sha256Hex, verifySubmission } from '@skerry/protocol';
import { sql } from 'kysely';
import { acceptMessage } from '../intake/accept.ts';
import { PROCESSED } from '../intake/accepted.ts';
import { digestState } from '../state/digest.ts';
import { readSharedTexts } from '../state/messages/shared.ts';
import { createTestCore, instanceContent, MIGRATIONS, signers, type TestCore } from '../testing/core.ts';
import type { Schema } from './schema.ts';

const T0 = 1_700_000_000;
const { alice, scheduler, node } = signers;
const log = createLogger('test', 'silent');

interface Sent {
  readonly body: string;
  readonly itemHash: string;
}
let counter = 0;
const signed = (signer: Signer, type: string, content: unknown, at: number): Sent =>
  signMessage(
    { type, content, channel: 'old', timestamp: T0 + at, nonce: `${counter++}` } as MessageDraft,
    signer,
  );

/** Every kind that migration 001 knew. */
function createWorld(): Sent[] {
  const machine = signed(alice, 'INSTANCE', instanceContent, 1);
  const id = machine.itemHash;
  const allocation = {
    ...{ instance_id: id, node_id: nodeIdOf(node.address), node_address: node.address, ipv6: 'fd00::1' },
    ...{ reason: null, decided_at_ms: 5 },
  };
  const status = { instance_id: id, phase: 'running', reason: null, observed_at_ms: 9, restart_id: null };
  return [
    machine,
    signed(alice, 'INSTANCE', { ...instanceContent, name: 'second' }, 2),
    signed(alice, 'INSTANCE_UPDATE', { instance_id: id, name: 'renamed' }, 3),
    signed(alice, 'INSTANCE_CONTROL', { instance_id: id, action: 'restart' }, 4),
    signed(scheduler, 'POST', { type: 'net-allocation', content: allocation }, 5),
    signed(node, 'POST', { type: 'net-instance-status', content: status }, 6),
    signed(alice, 'POST', { type: 'note', content: { text: 'é' }, tags: ['a', 'b'], ref: 'x' }, 7),
    signed(alice, 'POST', { type: 'note', content: { tags: ['a', 5] } }, 9),
    signed(alice, 'POST', { type: 'note' }, 8),
  ];
}

/** As the code of migration 001 wrote them. */
async function insertOld({ kysely: db }: Database<Schema>, world: readonly Sent[]): Promise<void> {
  for (const { body, itemHash } of world) {
    const { message, signature, address } = JSON.parse(body);
    const postType = message.type === 'POST' ? message.content.type : null;
    await sql`
      insert into messages (item_hash, chain, sender, type, channel, "timestamp", post_type, content, signed_text, signature)
      values (${itemHash}, ${message.chain}, ${address}, ${message.type}, ${message.channel}, ${message.timestamp},
        ${postType}, ${JSON.stringify(message.content)}, ${JSON.stringify(message)}, ${signature})`.execute(
      db,
    );
  }
}

async function insertOldUpload({ kysely: db }: Database<Schema>, bytes: Buffer): Promise<string> {
  const file = sha256Hex(bytes);
  const itemHash = itemHashOf('ETH', alice.address, file);
  const content = {
    item_type: 'storage',
    item_hash: file,
    size: bytes.length,
    content_type: 'text/plain',
    tags: ['t'],
  };
  await sql`
    insert into messages (item_hash, chain, sender, type, channel, "timestamp", post_type, content, signed_text, signature)
    values (${itemHash}, 'ETH', ${alice.address}, 'STORE', 'skerry', ${T0}, null, ${JSON.stringify(content)}, ${file},
      ${alice.sign(file)})`.execute(db);
  await sql`insert into files (hash, size_bytes, content_type) values (${file}, ${bytes.length}, 'text/plain')`.execute(
    db,
  );
  await sql`insert into file_pins (file_hash, message_hash, owner) values (${file}, ${itemHash}, ${alice.address})`.execute(
    db,
  );
  return itemHash;
}

/** What lists, totals and the digest say; nothing of when it was received. */
async function lookAt(core: TestCore) {
  await core.rooms.pipeline.idle();
  const { cursor: _cursor, ...digest } = await digestState(core.rooms.db);
  const read = async (path: string) => (await core.get(path)).body;
  const totals = await sql<object>`select a, b, total from totals
    where a not like 'k:%' and b not like 'k:%' and total <> 0 order by a, b`.execute(core.rooms.db);
  return {
    digest,
    totals: totals.rows,
    messages: (await read('/messages?limit=100')).messages,
    instances: (await read('/instances')).instances,
    tagged: (await read('/messages?tags=a')).pagination.total,
    byPath: (await read('/messages?content.keys=content.text')).pagination.total,
    posts: (await read('/posts.json')).posts,
    pins: await core.rooms.db.selectFrom('file_pins').selectAll().orderBy('message_hash').execute(),
  };
}

test('a database of migration 001 ends where a new one does that is sent the same messages', async () => {
  const world = createWorld();
  const bytes = Buffer.from('an old file\n');
  const first = await mkdtemp(join(tmpdir(), 'skerry-upgrade-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(first, { recursive: true, force: true }));
  const name = '001-messages-instances-events.sql';
  await cp(join(MIGRATIONS, name), join(first, name));
  const database = stack.use(await createTestDatabase<Schema>({ migrations: first, log }));
  // In an order that no longer is the one of their times.
  await insertOld(database, world.toReversed());
  const upload = await insertOldUpload(database, bytes);
  const { applied } = await migrate({ pool: database.pool, directory: MIGRATIONS, log });
  assert.ok(applied.length >= 1 && applied[0]!.startsWith('002'));
  const old = stack.use(await createTestCore({ database }));

  // It was sent them when they were made.
  const fresh = stack.use(await createTestCore({ now: () => (T0 + 100) * 1000 }));
  for (const { body } of world) assert.equal((await fresh.post('/messages', body)).status, 200);
  const store = await old.rooms.db
    .selectFrom('messages')
    .selectAll()
    .where('item_hash', '=', upload)
    .executeTakeFirstOrThrow();
  const { content, signature, channel } = store;
  await fresh.rooms.intake.client.keep({
    ...acceptMessage({
      ...{
        form: 'upload',
        itemHash: upload,
        chain: 'ETH',
        sender: alice.address,
        type: 'STORE',
        channel,
        time: T0,
      },
      ...{ content, signature, sourceText: store.source_text },
    }),
    decide: () => PROCESSED,
  });
  const [upgraded, expected] = [await lookAt(old), await lookAt(fresh)];
  assert.deepEqual(upgraded, expected);
  assert.equal(upgraded.messages.length, world.length + 1);
  assert.deepEqual(
    upgraded.instances.map(({ name: one, phase }: { name: string; phase: string }) => [one, phase]),
    [
      ['second', 'scheduled'],
      ['renamed', 'running'],
    ],
  );
  assert.deepEqual([upgraded.tagged, upgraded.byPath, upgraded.pins.length], [2, 1, 1]);
  const { rows } = await sql<{ left: number }>`select count(*) as left from reconsider`.execute(
    database.kysely,
  );
  assert.equal(rows[0]!.left, 0);
  assert.deepEqual((await migrate({ pool: database.pool, directory: MIGRATIONS, log })).applied, []);
});

test('a post that once came back without its amends has them again', async () => {
  await using core = await createTestCore();
  const note = signed(alice, 'POST', { type: 'note', content: {} }, 1);
  const amends = [2, 3].map((at) =>
    signed(alice, 'POST', { type: 'amend', ref: note.itemHash, content: { at } }, at),
  );
  for (const { body } of [note, ...amends]) await core.post('/messages', body);
  const before = await lookAt(core);
  assert.deepEqual(before.posts[0].content, { at: 3 });
  await sql`delete from amended_posts`.execute(core.rooms.db);
  const file = join(MIGRATIONS, '029-posts-that-came-back.sql');
  await sql.raw(await readFile(file, 'utf8')).execute(core.rooms.db);
  assert.deepEqual(await lookAt(core), before);
});

test('what a delegate did by a permission that was not understood is judged again', async () => {
  await using core = await createTestCore();
  const grant = (...authorizations: object[]) =>
    signed(alice, 'AGGREGATE', { key: 'security', content: { authorizations } }, 1);
  const act = (at: number, owner: string) =>
    signed(scheduler, 'POST', { type: 'note', content: {}, address: owner }, at);
  const understood = signed(
    node,
    'AGGREGATE',
    { key: 'security', content: { authorizations: [{ address: scheduler.address, types: ['POST'] }] } },
    1,
  );
  const [clear, unclear] = [act(2, node.address), act(2, alice.address)];
  for (const { body } of [understood, grant({ address: scheduler.address }), clear, unclear])
    assert.equal((await core.post('/messages', body)).status, 200);
  // As an earlier release read it.
  await sql`
    update aggregate_entries set value = ${JSON.stringify([{ address: scheduler.address, type: ['POST'] }])}::jsonb
    where owner = ${alice.address} and key = 'security'`.execute(core.rooms.db);
  const file = join(MIGRATIONS, '031-permissions-that-are-understood.sql');
  await sql.raw(await readFile(file, 'utf8')).execute(core.rooms.db);
  core.rooms.pipeline.resume();
  await core.rooms.pipeline.idle();
  const statusOf = async ({ itemHash }: Sent) => (await core.get(`/messages/${itemHash}/status`)).body.status;
  assert.deepEqual([await statusOf(clear), await statusOf(unclear)], ['processed', 'rejected']);
});

test('what was followed of a chain, also of one that has halted, is of the reading that there is', async () => {
  await using database = await createTestDatabase<Schema>({ migrations: MIGRATIONS, log });
  const { kysely: db, pool } = database;
  await pool.query(`
    alter table indexer_networks drop column reading;
    alter table anchor_networks drop column reading;
    insert into indexer_networks (name, chain_id, halt_code) values ('halted', 1, 'REORG_BELOW_FINALITY'), ('other', 2, null);
    insert into anchor_networks (network, settled_block, read_block) values ('halted', 7, 9), ('unknown', 7, 9)`);
  await pool.query(await readFile(join(MIGRATIONS, '040-readings-of-chains.sql'), 'utf8'));
  const { rows } = await sql<{ network: string; is_same: boolean | null }>`
    select network, a.reading = n.reading as is_same from anchor_networks a left join indexer_networks n on name = network
    order by network`.execute(db);
  assert.deepEqual(
    rows.map((row) => row.is_same),
    [true, null],
  );
});

const many = (value: unknown, count = 400) => Array.from({ length: count }, () => value);

/** Takes a POST with some content as an earlier release did. */
function takerOf({ rooms: { db, pipeline } }: TestCore) {
  let at = 0;
  return async (content: unknown, status = 'processed') => {
    const sent = signed(alice, 'POST', { type: 'note', content }, ++at);
    const message = verifySubmission(Buffer.from(sent.body), T0 + at);
    await pipeline.submit({ ...acceptMessage(message), message, decide: () => PROCESSED });
    await sql`update messages set status = ${status} where item_hash = ${sent.itemHash}`.execute(db);
    return sent.itemHash;
  };
}

test('contents whose numbers are too long without exponents are judged again, and no honest ones', async () => {
  await using core = await createTestCore();
  const { db, pipeline } = core.rooms;
  const take = takerOf(core);
  const extremes = [1.2e-120, -5e-324, 9e307, -1e308, 1e40];
  const tooLong = [
    await take(many(1e307, 118)),
    await take({ a: many(2.5e-120), b: 'x'.repeat(50_000) }),
    await take(many(1.2e-120), 'pending'),
  ];
  for (const value of extremes) tooLong.push(await take(many(value, 3_000)));
  const file = await take(many(1.2e-120));
  await sql`update messages set form = 'network', source_text = null where item_hash = ${file}`.execute(db);
  await take(many(9e307, 50));
  await take(many(1.5, 40_000));
  await take(many('1'.repeat(24), 4_000));
  await take({ text: '{"a":1e300}'.repeat(4_000) });
  await pipeline.idle();
  const name = '042-contents-that-are-too-long-written-out.sql';
  await sql.raw(await readFile(join(MIGRATIONS, name), 'utf8')).execute(db);
  const { rows } = await sql<{ item_hash: string }>`select item_hash from reconsider`.execute(db);
  assert.deepEqual(rows.map((row) => row.item_hash).toSorted(), [...tooLong, file].toSorted());
  pipeline.resume();
  await pipeline.idle();
  for (const hash of tooLong) {
    const { body } = await core.get(`/messages/${hash}/status`);
    assert.deepEqual([body.status, body.reason?.code], ['rejected', 'INVALID_CONTENT'], hash);
  }
});

test('of contents that are too long and were forgotten nothing is left but that, as on nodes that are told of it', async () => {
  await using core = await createTestCore();
  const { db, pipeline } = core.rooms;
  const take = takerOf(core);
  const gone = [await take(many(9e307, 200), 'forgotten'), await take(many(1.2e-120), 'forgotten')];
  const file = gone[1]!;
  const signature = alice.sign(['ETH', alice.address, 'POST', file].join('\n'));
  await sql`update messages set form = 'network', source_text = null, signature = ${signature}
    where item_hash = ${file}`.execute(db);
  const kept = [
    await take(many(9e307, 200), 'rejected'),
    await take(many(9e307, 20), 'forgotten'),
    await take(many(`sent " ${'1'.repeat(24)} wei \\`, 4_000), 'forgotten'),
  ];
  await pipeline.idle();
  const name = '044-pairs-of-tags-and-forgotten-contents.sql';
  await sql.raw(await readFile(join(MIGRATIONS, name), 'utf8')).execute(db);
  const rows = await db.selectFrom('messages').selectAll().execute();
  const erased = rows.filter((row) => row.content === null && row.source_text === null);
  assert.deepEqual(erased.map((row) => row.item_hash).toSorted(), gone.toSorted());
  assert.equal(rows.filter((row) => row.content !== null).length, kept.length);

  await using fresh = await createTestCore();
  const { texts } = await readSharedTexts(db, gone);
  const { peer } = fresh.rooms.intake;
  const frames = await peer.read([...texts.values()].map((text) => Buffer.from(text)));
  assert.equal((await peer.keep(frames)).taken, 2);
  for (const hash of gone)
    assert.equal((await fresh.get(`/messages/${hash}/status`)).body.status, 'forgotten', hash);
});

test('totals of two tags together go, and those of a tag with anything else stay', async () => {
  await using database = await createTestDatabase<Schema>({ migrations: MIGRATIONS, log });
  const { kysely: db, pool } = database;
  const kept = ['|', 'c:x|g:a', 'c:x|s:y', 'g:a|', 'g:a|k:1', 'g:a|z:1', 'g:g:b|', 'k:1|z:1'];
  const gone = ['g:a|g:b', 'g:a|g:g:b', 'g:a|g:\u{1f600}', 'g:|g:a'];
  const pairs = [...kept, ...gone].map((pair) => pair.split('|'));
  await sql`insert into totals (a, b, total) select a, b, 1
    from unnest(${pairs.map(([a]) => a)}::text[], ${pairs.map(([, b]) => b)}::text[]) as t (a, b)`.execute(
    db,
  );
  await pool.query(await readFile(join(MIGRATIONS, '044-pairs-of-tags-and-forgotten-contents.sql'), 'utf8'));
  const { rows } = await sql<{
    pair: string;
  }>`select a || '|' || b as pair from totals order by a, b`.execute(db);
  assert.deepEqual(
    rows.map((row) => row.pair),
    kept,
  );
});

test('what was refused for want of credit and had been charged is judged again', async () => {
  await using core = await createTestCore({ creditEnforcement: true });
  const { db, pipeline } = core.rooms;
  const refuse = async (at: number) => {
    const { body, itemHash } = signed(alice, 'INSTANCE', instanceContent, at);
    await pipeline.submit(acceptMessage(verifySubmission(Buffer.from(body), T0 + at)));
    return itemHash;
  };
  const [uncharged, charged] = [await refuse(1), await refuse(2)];
  await pipeline.idle();
  const readStatuses = async () => {
    const { rows } = await sql<{ status: string }>`select status from messages order by "time"`.execute(db);
    return rows.map(({ status }) => status);
  };
  assert.deepEqual(await readStatuses(), ['rejected', 'rejected']);
  await sql`
    insert into credit_entries (item_hash, place, key, kind, owner, nano, ref, "time", counts) values
      ('p', 0, 'grant', 'purchase', ${alice.address}, 342000000000000, 'grant', ${T0}, true),
      ('e', 0, 'charge', 'expense', ${alice.address}, -14250000000000, ${charged}, ${T0 + 1}, true)`.execute(
    db,
  );
  const name = '045-charges-dated-before-what-they-are-for.sql';
  await sql.raw(await readFile(join(MIGRATIONS, name), 'utf8')).execute(db);
  const { rows } = await sql<{ item_hash: string }>`select item_hash from reconsider`.execute(db);
  assert.deepEqual(
    rows.map((row) => row.item_hash),
    [charged],
    `not ${uncharged}`,
  );
  pipeline.resume();
  await pipeline.idle();
  assert.deepEqual(await readStatuses(), ['rejected', 'processed']);
});

test('ABIs that an owner declared one by one become one, which is read in the order in which they were', async () => {
  await using database = await createTestDatabase<Schema>({ migrations: MIGRATIONS, log });
  const { kysely: db, pool } = database;
  await pool.query(`
    alter table indexer_scans drop column owner;
    insert into indexer_networks (name, chain_id) values ('chain', 1);
    insert into indexer_contracts (network_id, address) select id, address from indexer_networks, (values ('0xa'), ('0xb')) v (address);
    insert into indexer_scans (network_id, contract_id, kind, topics, from_block, next_block)
      select network_id, id, 'events', '{}', 0, 0 from indexer_contracts;
    insert into indexer_abis (contract_id, version, owner, event_ids)
      select c.id, version, owner, ids from indexer_contracts c cross join (values
        (1, 'single', '{9,4}'::integer[]), (2, 'attacker', '{5,1,2}'), (3, 'other', '{7}'), (4, 'attacker', '{2,8}'), (6, 'attacker', '{3,1,3}'),
        (7, 'other', '{7,6}')) v (version, owner, ids)
      where c.address = '0xa' or owner = 'single'`);
  await pool.query(await readFile(join(MIGRATIONS, '043-one-abi-of-an-owner.sql'), 'utf8'));
  const { rows } = await sql<{ address: string; version: number; owner: string; event_ids: number[] }>`
    select address, version, owner, event_ids from indexer_abis a join indexer_contracts c on c.id = a.contract_id
    order by address, version`.execute(db);
  assert.deepEqual(
    rows.map((row) => [row.address, row.version, row.owner, row.event_ids]),
    [
      ['0xa', 1, 'single', [9, 4]],
      ['0xa', 2, 'attacker', [3, 1, 2, 8, 5]],
      ['0xa', 3, 'other', [7, 6]],
      ['0xb', 1, 'single', [9, 4]],
    ],
  );
  const scans = await sql<{ owner: string | null }>`select owner from indexer_scans`.execute(db);
  assert.deepEqual(
    scans.rows.map(({ owner }) => owner),
    [null, null],
  );
});
