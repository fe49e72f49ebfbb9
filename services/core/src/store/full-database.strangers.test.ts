import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { createTestCore, MIGRATIONS, signers } from '../testing/core.ts';
import type { Schema } from './schema.ts';

const { alice } = signers;
const note = (n: number) => ({ type: 'POST', content: { type: 'note', content: n } }) as const;

/** What the server says where a table cannot grow, of whatever is written to one. */
const FULL = `
  create function refuse() returns trigger language plpgsql as $$ begin
    raise exception 'could not extend file "base/1/2": No space left on device' using errcode = 'disk_full';
  end $$;
  create trigger full_disk before insert on messages execute function refuse();`;

test('F6: a database server whose disk is full is said so to clients, in health and in the log, until it takes writes again', async () => {
  const lines: { level: number; msg: string }[] = [];
  const log = createLogger('core', 'info', { write: (line: string) => void lines.push(JSON.parse(line)) });
  await using stack = new AsyncDisposableStack();
  const database = stack.use(await createTestDatabase<Schema>({ migrations: MIGRATIONS, log }));
  let uptimeMs = 0;
  const core = stack.use(await createTestCore({ database, log, uptime: () => uptimeMs }));
  const first = await core.send(alice, note(1));
  assert.equal(first.status, 200);
  await database.pool.query(FULL);
  lines.length = 0;

  for (let n = 2; n < 6; n++) {
    const { status, body, headers } = await core.send(alice, note(n));
    assert.deepEqual([status, body.code], [507, 'STORAGE_FULL']);
    assert.match(body.error, /disk of the database is full/);
    assert.ok(Number(headers['retry-after']) > 0);
  }
  const health = async () => (await core.get('/health')).body;
  const { status, checks } = await health();
  assert.deepEqual([status, checks.database.status], ['degraded', 'degraded']);
  assert.match(
    checks.database.reason,
    /^the disk of the database is full: writes are refused, reads continue$/,
  );
  assert.equal((await core.get(`/messages/${first.body.item_hash}`)).status, 200);

  // A small write that finds room in between does not hide it.
  await database.pool.query('alter table messages disable trigger full_disk');
  assert.equal((await core.send(alice, note(6))).status, 200);
  assert.equal((await health()).status, 'degraded');
  uptimeMs += 10_000;
  assert.equal((await core.send(alice, note(7))).status, 200);
  assert.equal((await health()).status, 'ok');
  const said = lines.filter(({ msg }) => /disk of the database|takes writes again/.test(msg));
  assert.deepEqual(
    said.map(({ level }) => level),
    [50, 30],
  );
});
