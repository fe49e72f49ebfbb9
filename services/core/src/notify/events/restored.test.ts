import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { createTestDatabase, startTcpTestServer } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import type { Schema } from '../../store/schema.ts';
import { createTestCore, MIGRATIONS, signers, type TestCore } from '../../testing/core.ts';

const log = createLogger('test', 'silent');
const run = promisify(execFile);

/** Of the program; undefined where it is not installed. */
const versionOf = (program: string) =>
  run(program, ['--version']).then(
    ({ stdout }) => Number(/ (\d+)/.exec(stdout)?.[1]),
    () => undefined,
  );

const send = async (core: TestCore, text: string): Promise<string> => {
  const { body } = await core.send(signers.alice, { type: 'POST', content: { type: 'note', content: text } });
  await core.rooms.pipeline.idle();
  return body.item_hash;
};
const lastOf = async (core: TestCore) => Number((await core.get('/events?cursor=latest')).body.next_cursor);

test('who has read farther than a dump misses nothing where that is restored, in another cluster or in its own', async (t) => {
  await using stack = new AsyncDisposableStack();
  const servers = [
    stack.use(await startTcpTestServer(log)),
    stack.use(await startTcpTestServer(log)),
  ] as const;
  const create = async (serverUrl: string, migrations?: string) =>
    stack.use(await createTestDatabase<Schema>({ serverUrl, migrations, log }));
  const lost = await create(servers[0].url, MIGRATIONS);
  const { rows } = await lost.pool.query<{ major: number }>(
    "select current_setting('server_version_num')::int / 10000 as major",
  );
  if ((await versionOf('pg_dump')) !== rows[0]!.major)
    return t.skip('no pg_dump of the version of the server');
  const directory = await mkdtemp(join(tmpdir(), 'skerry-dump-'));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const dump = join(directory, 'dump.sql');

  const before = stack.use(await createTestCore({ database: lost }));
  const kept = await send(before, 'in the dump');
  // As every node counts that lost nothing.
  assert.ok((await lastOf(before)) < 1_000);
  await run('pg_dump', ['--no-owner', '-f', dump, lost.url]);
  for (const text of ['after', 'the', 'dump']) await send(before, text);
  const read = await lastOf(before);

  for (const server of [servers[1], servers[0]]) {
    const database = await create(server.url);
    await run('psql', ['-q', '-X', '-v', 'ON_ERROR_STOP=1', '-f', dump, database.url]);
    const restored = stack.use(await createTestCore({ database }));
    assert.equal((await restored.get(`/messages/${kept}`)).body.status, 'processed');
    // Nothing is written yet: no number is told that would be another event's.
    assert.equal((await restored.get(`/events?cursor=${read}`)).status, 200);
    const sent = await send(restored, 'on the restored database');
    const { body } = await restored.get(`/events?cursor=${read}&kinds=message`);
    assert.deepEqual(
      body.events.map((event: { data: { item_hash: string } }) => event.data.item_hash),
      [sent],
    );
    const first = Number(body.events[0].cursor);
    // Once alone.
    await send(restored, 'another one');
    assert.ok((await lastOf(restored)) - first < 1_000);
  }
});
