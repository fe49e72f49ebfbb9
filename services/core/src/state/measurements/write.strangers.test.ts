import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { parseMetricsReport } from '@skerry/protocol';
import { Kysely, PostgresDialect, sql } from 'kysely';
import { MIGRATIONS } from '../../store/directory.ts';
import type { Schema } from '../../store/schema.ts';
import { deleteReports, insertReports } from './write.ts';

const RECORDS = 20_000;
/** A thirtieth of it is enough. Each record was joined with all others of its moment, which took longer. */
const LIMIT = '10s';

test('a report full of records of one node and one moment is taken out again at once', async () => {
  await using database = await createTestDatabase<Schema>({
    migrations: MIGRATIONS,
    log: createLogger('test', 'fatal'),
  });
  const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool: database.pool }) });
  const crn = Array.from({ length: RECORDS }, () => ({
    node_id: 'ab'.repeat(32),
    measured_at: 1_700_000_000,
  }));
  const report = parseMetricsReport({ version: '1.0', tags: [], metrics: { ccn: [], crn } });
  assert.equal(report.compute.length, RECORDS);
  const reports = [{ itemHash: 'h', owner: 'monitor', report }];
  await sql`insert into metrics_publishers values ('monitor')`.execute(db);
  await insertReports(db, reports);
  await db.transaction().execute(async (trx) => {
    await sql`set local statement_timeout = ${sql.lit(LIMIT)}`.execute(trx);
    await deleteReports(trx, reports);
  });
  const { rows } = await sql<{ left: number }>`select count(*) as left from node_metrics`.execute(db);
  assert.equal(rows[0]!.left, 0);
});
