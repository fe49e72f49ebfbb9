import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import type pg from 'pg';
import { createTestDatabase, type TestDatabase } from '../testing/database.ts';

const log = createLogger('test', 'silent');
const STATEMENT = `/* prepared */ select name, area, seen_at, tags, said from islands where name = $1 or $1 = '' order by name`;
const IONA = {
  name: 'Iona',
  area: 877,
  seen_at: new Date('2026-12-01T00:00:00Z'),
  tags: ['abbey', null],
  said: { of: ['it'] },
};
const ULVA = { name: 'Ulva', area: null, seen_at: null, tags: null, said: null };

describe('a prepared statement', () => {
  let database: TestDatabase<unknown>;
  let client: pg.PoolClient;
  before(async () => {
    database = await createTestDatabase({ log });
    client = await database.pool.connect();
    await client.query(
      'create table islands (name text, area bigint, seen_at timestamptz, tags text[], said jsonb)',
    );
    for (const { name, area, seen_at, tags, said } of [IONA, ULVA])
      await client.query('insert into islands values ($1, $2, $3, $4, $5)', [
        name,
        area,
        seen_at,
        tags,
        said,
      ]);
  });
  after(async () => {
    client.release();
    await database[Symbol.asyncDispose]();
  });
  const ask = (name: unknown) => client.query(STATEMENT, [name]);

  test('is described once, and gives the same rows and fields ever after', async () => {
    let described = 0;
    const { connection } = client as unknown as { connection: pg.Connection };
    const note = () => {
      described++;
    };
    connection.on('rowDescription', note);
    const first = await ask('');
    for (const [name, rows] of [
      ['Iona', [IONA]],
      ['Mull', []],
      ['', [IONA, ULVA]],
    ] as const) {
      const found = await ask(name);
      assert.deepEqual(found.rows, rows);
      assert.deepEqual(found.fields, first.fields);
      assert.deepEqual([found.command, found.rowCount], ['SELECT', rows.length]);
    }
    connection.off('rowDescription', note);
    assert.equal(described, 1);
    // Rows are the caller's own.
    const [one] = (await ask('Ulva')).rows;
    one.area = 1;
    assert.deepEqual((await ask('Ulva')).rows, [ULVA]);
  });

  test('that fails, or has a value that cannot be sent, leaves the connection as it was', async () => {
    await ask('Iona');
    const circular: Record<string, unknown> = {};
    circular.self = circular;
    await assert.rejects(ask(circular), TypeError);
    const divided = '/* prepared */ select 1 / $1::int as part';
    assert.deepEqual((await client.query(divided, [1])).rows, [{ part: 1 }]);
    await assert.rejects(client.query(divided, [0]), { code: '22012' });
    assert.deepEqual((await client.query(divided, [1])).rows, [{ part: 1 }]);
    assert.deepEqual((await ask('Iona')).rows, [IONA]);
  });
});
