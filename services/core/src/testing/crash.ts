import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { CoreClient, type MessageDraft, request, type Signer, signMessage } from '@skerry/client';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { type Kysely, sql } from 'kysely';
import { digestState } from '../state/digest.ts';
import { addSteps, NO_MESSAGES } from '../store/message-set.ts';
import type { Schema } from '../store/schema.ts';
import { createTestCore, instanceContent, MIGRATIONS, signers } from './core.ts';
import { type NodeProcess, startNode } from './node.ts';

const WRITERS = 8;
const CHANNEL = 'crash';

/** Messages of every sort of effect, one after another: what came before is changed and taken back. */
function* draftsOf(writer: number): Generator<MessageDraft, void, string> {
  const draft = (type: string, content: unknown): MessageDraft => ({ type, content, channel: CHANNEL });
  const machine = yield draft('INSTANCE', { ...instanceContent, name: `w${writer}` });
  for (let n = 0; ; n++) {
    const note = yield draft('POST', { type: 'note', content: { n }, tags: [`t${n % 3}`] });
    const element = yield draft('AGGREGATE', { key: `k${writer}`, content: { [`f${n % 5}`]: n, last: n } });
    yield draft('INSTANCE_CONTROL', { instance_id: machine, action: n % 2 === 0 ? 'stop' : 'start' });
    yield draft('POST', { type: 'amend', ref: note, content: { amended: n } });
    if (n % 2 === 0) yield draft('FORGET', { hashes: [note, element] });
  }
}

/** Sends messages until the node is gone; gives the hashes that the node acknowledged. */
async function writeUntilGone(url: string, writer: number, signer: Signer): Promise<string[]> {
  const acknowledged: string[] = [];
  const drafts = draftsOf(writer);
  let last = '';
  for (;;) {
    const { body, itemHash } = signMessage(drafts.next(last).value!, signer);
    last = itemHash;
    try {
      await request(`${url}/api/v0/messages`, { method: 'POST', body });
    } catch {
      return acknowledged;
    }
    acknowledged.push(itemHash);
  }
}

/** Writes until so many events were seen, at a moment nobody chose, and ends the node without a word. */
export async function killUnderLoad(core: NodeProcess, events: number): Promise<string[]> {
  const writers = Array.from({ length: WRITERS }, (_, n) =>
    writeUntilGone(core.url, n, n % 2 === 0 ? signers.alice : signers.bob),
  );
  const client = new CoreClient({ url: core.url });
  const start = Number((await client.listInstances()).cursor);
  for await (const { cursor } of client.events({
    cursor: String(start),
    signal: AbortSignal.timeout(240_000),
  }))
    if (Number(cursor) >= start + events) break;
  await core.end('SIGKILL');
  return (await Promise.all(writers)).flat();
}

/** What is kept beside the messages is what follows from them, and the event log has no gap. */
async function checkBooks(db: Kysely<Schema>): Promise<void> {
  const rows = await db.selectFrom('messages').select(['item_hash', 'status']).execute();
  const recomputed = addSteps(
    NO_MESSAGES,
    rows.map(({ item_hash, status }) => ({ itemHash: item_hash, from: null, to: status })),
  );
  const { messages } = await digestState(db);
  assert.deepEqual(messages, recomputed);
  const counted = await sql<{ label: string; kept: number; there: number }>`
    with there as (
      select '' as label, count(*) as n from messages where status = 'processed'
      union all select 's:' || sender, count(*) from messages where status = 'processed' group by sender
      union all select 't:' || type, count(*) from messages where status = 'processed' group by type
      union all select 'g:' || tag, count(*) from message_tags group by tag
    )
    select there.label, total as kept, n as there from there left join totals on a = label and b = ''
    where coalesce(total, 0) <> n`.execute(db);
  assert.deepEqual(counted.rows, []);
  const { rows: log } = await sql<{ last: number; count: number; max: number }>`
    select (select last_seq from event_counter) as last, count(*) as count, coalesce(max(seq), 0) as max from events`.execute(
    db,
  );
  assert.ok(log[0]!.last === log[0]!.count && log[0]!.last === log[0]!.max);
}

/** Which messages differ says more than a digest. */
async function listStatuses(db: Kysely<Schema>): Promise<string[]> {
  const rows = await db
    .selectFrom('messages')
    .select(['item_hash', 'type', 'time', 'status', 'content'])
    .orderBy('item_hash')
    .execute();
  return rows.map((row) => JSON.stringify(row));
}

/** A new node that is told the same messages in another order ends in the same state. */
async function checkAgainstNewNode(db: Kysely<Schema>): Promise<void> {
  await using fresh = await createTestCore();
  const rows = await db.selectFrom('messages').selectAll().orderBy('signature').execute();
  for (const { source_text, signature, sender } of rows)
    await fresh.post(
      '/messages',
      `{"message":${source_text},"signature":"${signature}","address":"${sender}"}`,
    );
  await fresh.rooms.pipeline.idle();
  assert.deepEqual(await listStatuses(db), await listStatuses(fresh.rooms.db));
  const { cursor: _a, ...expected } = await digestState(fresh.rooms.db);
  const { cursor: _b, ...got } = await digestState(db);
  assert.deepEqual(got, expected);
}

/** Kills a node under load again and again: what it acknowledged is there, once, and the state is that of its messages. */
export async function surviveKills(t: TestContext, kills: number): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), 'skerry-crash-'));
  t.after(() => rm(home, { recursive: true, force: true }));
  const log = createLogger('test', 'silent');
  await using database = await createTestDatabase<Schema>({ migrations: MIGRATIONS, log });
  const acknowledged = new Set<string>();
  for (let kill = 0; kill < kills; kill++) {
    const core = await startNode(home, database.url);
    t.after(() => core.end('SIGKILL'));
    // Whatever an earlier process had left in line was decided before this one was ready.
    await checkBooks(database.kysely);
    for (const hash of await killUnderLoad(core, 60 + ((kill * 37) % 60))) acknowledged.add(hash);
  }
  const core = await startNode(home, database.url);
  t.after(() => core.end('SIGKILL'));
  // The lease of the process that was killed holds for seconds: only who leads decides what stands in line.
  await until('what an earlier process had left in line is decided', async () => {
    const line = await database.kysely.selectFrom('reconsider').selectAll().execute();
    return line.length === 0;
  });
  await checkBooks(database.kysely);
  const statuses = new Map(
    (await database.kysely.selectFrom('messages').select(['item_hash', 'status']).execute()).map((row) => [
      row.item_hash,
      row.status,
    ]),
  );
  const lost = [...acknowledged].filter((hash) => !statuses.has(hash));
  t.diagnostic(
    `${acknowledged.size} acknowledged over ${kills} kills, ${statuses.size} found, ${lost.length} lost`,
  );
  assert.deepEqual(lost, []);
  assert.ok(acknowledged.size > kills * 20);
  assert.ok([...statuses.values()].includes('forgotten'));
  assert.ok(![...statuses.values()].includes('pending'), 'nothing waits for what is there');
  await core.end('SIGTERM');
  await checkAgainstNewNode(database.kysely);
}
