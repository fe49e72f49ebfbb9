import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { createTestDatabase } from '../testing/database.ts';
import { readConnectionRoom } from './room.ts';

test('the server says how many connections it gives a role, and the limit of its database counts, too', async () => {
  await using database = await createTestDatabase({ log: createLogger('test', 'silent') });
  const { pool } = database;
  const { rows } = await pool.query<{ all: number; kept: number; name: string }>(`
    select current_setting('max_connections')::int as all, current_setting('superuser_reserved_connections')::int as kept,
      current_database() as name`);
  const { all, kept, name } = rows[0]!;
  assert.equal(await readConnectionRoom(pool), all - kept);
  await pool.query(`alter database ${name} connection limit 30`);
  assert.equal(await readConnectionRoom(pool), 30);
});
