import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CoreClient } from '@skerry/client';
import { openPool, Standby } from '@skerry/database';
import { createTestDatabase, databaseUrlOf, startTestCluster } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import type { Schema } from '../store/schema.ts';
import { SCHEMA_VERSION } from '../store/schema-version.ts';
import { createTestCore, MIGRATIONS, signers, type TestCore } from '../testing/core.ts';

const log = createLogger('test', 'silent');
const { alice } = signers;

/** How often a standby answered a query, was behind, failed. */
async function outcomes(core: TestCore): Promise<number[]> {
  const text = await core.rooms.metrics.own.registry.metrics();
  return ['standby', 'behind', 'failed'].map((outcome) =>
    Number(new RegExp(`skerry_standby_reads_total{outcome="${outcome}"} (\\d+)`).exec(text)?.[1] ?? 0),
  );
}

const note = { type: 'POST', content: { type: 'note', content: {} } };

// A standby that takes a second to answer, on a busy machine, is not asked for some seconds: each of these waits until it is.

/** An app reads what it has written, and knows nothing of standbys; the replay is paused. */
async function writeAndRead(client: CoreClient, core: TestCore): Promise<string> {
  const primary = await client.listInstances();
  const before = await outcomes(core);
  const { item_hash: hash } = await client.postMessage(note);
  await until('it asks for what it has written', async () => {
    assert.equal((await client.getMessage(hash)).item_hash, hash);
    return (await outcomes(core))[1]! > before[1]!;
  });
  const { cursor } = await client.listInstances();
  assert.ok(Number(cursor) > Number(primary.cursor));
  return hash;
}

// 9 CPU seconds.
test('a read that names an event is answered by a standby that has it, else by the primary; one that names none always is', async () => {
  await using cluster = await startTestCluster(log);
  await using database = await createTestDatabase<Schema>({
    serverUrl: cluster.primaryUrl,
    migrations: MIGRATIONS,
    log,
  });
  const url = databaseUrlOf(cluster.standbyUrl, database.name);
  await using replaying = await openPool(
    { connectionString: cluster.standbyUrl },
    { log, connectionsMax: 1 },
  );
  await until('the standby has the database', async () => {
    const { rowCount } = await replaying.pool.query('select from pg_database where datname = $1', [
      database.name,
    ]);
    return rowCount === 1;
  });
  await using standby = await Standby.open({ url, log });
  await using core = await createTestCore({ database, standby });
  const post = (n: number) => core.send(alice, { type: 'POST', content: { type: 'note', content: { n } } });
  const read = (hash: string, after?: string) =>
    core.get(`/messages/${hash}`, after === undefined ? {} : { 'x-after-event': after });

  const first = await post(1);
  const event = String(first.headers['x-last-event']);
  assert.match(event, /^[1-9][0-9]*$/);
  await until('the standby has the message', async () => {
    assert.equal((await read(first.body.item_hash, event)).status, 200);
    return (await outcomes(core))[0]! > 0;
  });

  await replaying.pool.query('select pg_wal_replay_pause()');
  const second = await post(2);
  const later = String(second.headers['x-last-event']);
  assert.ok(Number(later) > Number(event));
  const before = await outcomes(core);
  assert.equal((await read(second.body.item_hash)).status, 200, 'the primary answers who names no event');
  assert.deepEqual(await outcomes(core), before);
  await until('the standby was asked, and is behind', async () => {
    assert.equal((await read(second.body.item_hash, later)).status, 200, 'read after write');
    return (await outcomes(core))[1]! > before[1]!;
  });
  await until(
    'what is named is enough',
    async () => (await read(second.body.item_hash, event)).status === 404,
  );
  const list = await core.get('/instances', { 'x-after-event': event });
  assert.equal(list.body.cursor, event, 'what a list may lack comes after its cursor');
  const client = new CoreClient({ url: await core.listen(), signer: alice });
  const own = await writeAndRead(client, core);

  await replaying.pool.query('select pg_wal_replay_resume()');
  await until('the standby has come so far', async () => {
    assert.equal((await read(second.body.item_hash, later)).status, 200);
    return (await outcomes(core))[0]! > before[0]! + 1;
  });
  const caughtUp = await outcomes(core);
  await until('the standby answers the client', async () => {
    await client.getMessage(own);
    return (await outcomes(core))[0]! > caughtUp[0]!;
  });
  assert.equal((await read(first.body.item_hash, 'soon')).body.code, 'INVALID_CURSOR');

  // A migration that the standby has not come to: it has a column by an older name.
  const migrate = (version: number, from: string, to: string) =>
    database.pool.query(
      `update event_counter set schema_version = ${version}; alter table messages rename ${from} to ${to}`,
    );
  await using there = await openPool({ connectionString: url }, { log, connectionsMax: 1 });
  await migrate(SCHEMA_VERSION - 1, 'item_hash', 'old_hash');
  await until('the standby has the older schema', async () => {
    const { rows } = await there.pool.query('select schema_version from event_counter');
    return rows[0].schema_version < SCHEMA_VERSION;
  });
  await replaying.pool.query('select pg_wal_replay_pause()');
  await migrate(SCHEMA_VERSION, 'old_hash', 'item_hash');
  // As of a process that starts after the migration: it has not asked the standby yet.
  await using upgraded = await Standby.open({ url, log });
  await using next = await createTestCore({ database, standby: upgraded });
  const readNext = () => next.get(`/messages/${first.body.item_hash}`, { 'x-after-event': '0' });
  await until('the standby was asked, and is behind', async () => {
    assert.equal((await readNext()).status, 200);
    return (await outcomes(next))[1]! > 0;
  });
  await replaying.pool.query('select pg_wal_replay_resume()');
  await until('the standby answers', async () => {
    assert.equal((await readNext()).status, 200);
    return (await outcomes(next))[0]! > 0;
  });

  // Its connections end in the middle of whatever they do.
  await replaying.pool.query(
    'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()',
    [database.name],
  );
  assert.equal((await read(second.body.item_hash, later)).status, 200, 'the primary answers for it');
});
