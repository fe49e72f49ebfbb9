import assert from 'node:assert/strict';
import { chmod } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { anyCharacter } from '@skerry/protocol/testing/characters';
import fc from 'fast-check';
import pg from 'pg';
import { asDatabaseError } from '../failure.ts';
import { createTestDatabase, type TestDatabase } from '../testing/database.ts';
import { createWrite } from '../write.ts';
import { storableJson, storableText } from './values.ts';

interface Schema {
  things: { id: number; text: string | null; data: unknown };
}

describe("the database's edge", () => {
  let database: TestDatabase<Schema>;
  before(async () => {
    database = await createTestDatabase<Schema>({ log: createLogger('test', 'fatal') });
    await database.pool.query('create table things (id bigint, text text, data jsonb, at float8)');
  });
  after(() => database[Symbol.asyncDispose]());

  test('F2: what a column cannot hold is refused before it is sent, by statements and by COPY', async () => {
    const { pool } = database;
    for (const value of [1_795_332_607_957.082, Number.NaN, 'a\0b', ['a', 'b\0']]) {
      const refused = { code: 'INVALID_PARAMETERS', message: /^the database cannot hold/ };
      await assert.rejects(pool.query('select $1', [value]), refused);
      await assert.rejects(pool.query({ text: 'select $1', values: [value] }), refused);
      if (Array.isArray(value)) continue;
      const copied = createWrite<Schema>(pool)(async ({ copy }) => copy('things', ['text'], [[value]]));
      await assert.rejects(copied, refused);
    }
    await pool.query('insert into things (id, at) values ($1, $2)', [Date.now(), Date.now() / 1000]);
    const { rows } = await pool.query('select count(*)::int as count from things');
    assert.equal(rows[0].count, 1);
  });

  test('F2: a text of any stranger can be stored as a reason', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: anyCharacter }), async (any) => {
        const hostile = `${any}\0\uD800${any}\uDC00`;
        const { rows } = await database.pool.query('select $1::jsonb as data, $2::text as text', [
          storableJson({ message: hostile }),
          storableText(hostile),
        ]);
        assert.equal(rows[0].data.message, rows[0].text);
        assert.equal(storableText(rows[0].text), rows[0].text);
      }),
      { numRuns: 50 },
    );
  });

  test('F2: faults of a server that is being replaced, of locks and of lost connections may pass', async () => {
    for (const code of ['25006', '40001', '40P01', '55P03', '57P01', '53300', '08006', 'ECONNRESET'])
      assert.equal(asDatabaseError(Object.assign(new Error('x'), { code }))?.code, 'DATABASE_UNAVAILABLE');
    const full = Object.assign(new Error('could not extend file'), { code: '53100' });
    assert.equal(asDatabaseError(full)?.code, 'STORAGE_FULL');
    // In whatever language the server tells it.
    const readOnly = 'konnte Datei »base/16384/17108« nicht öffnen: Das Dateisystem ist nur lesbar';
    for (const [message, file, is] of [
      [readOnly, 'md.c', 'DATABASE_UNAVAILABLE'],
      ['permission denied for table messages', 'aclchk.c', undefined],
    ] as const)
      assert.equal(asDatabaseError(Object.assign(new Error(message), { code: '42501', file }))?.code, is);
    for (const code of ['22P02', '23505', '42601', 'EACCES'])
      assert.equal(asDatabaseError(Object.assign(new Error('x'), { code })), undefined);
    const client = await database.pool.connect();
    try {
      await client.query('begin read only');
      const error = await client.query('insert into things (id) values (1)').catch((failure) => failure);
      assert.equal(asDatabaseError(error)?.code, 'DATABASE_UNAVAILABLE');
      // Another server may take writes by now, so this one is left.
      await assert.rejects(client.query('select'), /not queryable/);
    } finally {
      client.release();
    }
  });

  test('F2: a file of its own that the server may not open is a fault of the server', async () => {
    const { pool } = database;
    // No checkpoint writes to it.
    await pool.query('create unlogged table barred (id int)');
    await pool.query('insert into barred values (1)');
    const { rows } = await pool.query(
      `select current_setting('data_directory') || '/' || pg_relation_filepath('barred') as path`,
    );
    await chmod(rows[0].path, 0);
    // Whoever has it open may read it.
    const fresh = new pg.Client({ connectionString: database.url });
    await fresh.connect();
    try {
      const error = await fresh.query('insert into barred values (2)').catch((failure) => failure);
      assert.equal(error.code, '42501');
      assert.equal(asDatabaseError(error)?.code, 'DATABASE_UNAVAILABLE');
    } finally {
      await fresh.end();
      await chmod(rows[0].path, 0o600);
    }
  });
});
