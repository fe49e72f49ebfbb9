import { METRICS_POST_TYPES, parseMetricsReport, SCORING_CHANNEL } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../db/schema.ts';
import { lockForStart } from '../db/start-lock.ts';
import { insertReports } from './write.ts';

/** Messages that are read at once; each may be as large as a content file. */
const MESSAGES_PER_ROUND = 50;

/**
 * Makes the stored measurements those of exactly these publishers: the setting may have changed since the node ran last.
 * To be called before messages are processed.
 * @param publishers addresses
 */
export async function syncPublishers(db: Kysely<Schema>, publishers: ReadonlySet<string>): Promise<void> {
  if (!(await findChange(db, publishers))) return;
  // All or nothing: a node that is killed here begins anew.
  await db.transaction().execute(async (trx) => {
    // One of several nodes that start on one database does it; the others find it done.
    await lockForStart(trx, 'metrics_publishers');
    const change = await findChange(trx, publishers);
    if (!change) return;
    const { gone, added } = change;
    await sql`
      delete from node_metrics r using metrics_messages m
      where r.message = m.id and m.owner = any(${gone}::text[])`.execute(trx);
    await sql`delete from metrics_messages where owner = any(${gone}::text[])`.execute(trx);
    await sql`delete from metrics_publishers where address = any(${gone}::text[])`.execute(trx);
    await sql`insert into metrics_publishers select unnest(${added}::text[])`.execute(trx);
    if (added.length > 0) await readMessages(trx, added);
  });
}

async function findChange(
  db: Kysely<Schema>,
  publishers: ReadonlySet<string>,
): Promise<{ gone: string[]; added: string[] } | undefined> {
  const { rows } = await sql<{ address: string }>`select address from metrics_publishers`.execute(db);
  const before = new Set(rows.map((row) => row.address));
  const gone = [...before].filter((address) => !publishers.has(address));
  const added = [...publishers].filter((address) => !before.has(address));
  return gone.length === 0 && added.length === 0 ? undefined : { gone, added };
}

/** Reads what new publishers had said before they were trusted. */
async function readMessages(db: Kysely<Schema>, owners: readonly string[]): Promise<void> {
  const types = [...METRICS_POST_TYPES];
  for (let after = ''; ; ) {
    const { rows } = await sql<{ item_hash: string; owner: string; content: unknown }>`
      select item_hash, owner, content -> 'content' as content from messages
      where type = 'POST' and status = 'processed' and content_type = any(${types}::text[])
        and channel = ${SCORING_CHANNEL} and owner = any(${owners}::text[]) and item_hash > ${after}
      order by item_hash limit ${MESSAGES_PER_ROUND}`.execute(db);
    const reports = rows.map((row) => ({
      itemHash: row.item_hash,
      owner: row.owner,
      report: parseMetricsReport(row.content),
    }));
    if (reports.length > 0) await insertReports(db, reports);
    if (rows.length < MESSAGES_PER_ROUND) return;
    after = rows.at(-1)!.item_hash;
  }
}
