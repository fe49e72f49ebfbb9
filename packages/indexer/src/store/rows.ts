import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { EVENT_COLUMNS, type RowBatch, type SpanDraft, TRANSACTION_COLUMNS } from '../decode/rows.ts';
import { type RowKind, tableOf } from './partitions.ts';

const COLUMNS: Readonly<Record<RowKind, string>> = {
  events: EVENT_COLUMNS,
  transactions: TRANSACTION_COLUMNS,
};

async function copy(
  client: pg.PoolClient,
  table: string,
  columns: string,
  chunks: readonly Uint8Array[],
): Promise<void> {
  const stream = client.query(copyFrom(`copy ${table} ${columns} from stdin`));
  const done = finished(stream);
  // A failure of the server ends the stream while we wait for room in it.
  done.catch(() => {});
  for (const { buffer, byteOffset, length } of chunks) {
    if (stream.destroyed) break;
    if (!stream.write(Buffer.from(buffer, byteOffset, length)))
      await Promise.race([once(stream, 'drain'), done]);
  }
  stream.end();
  await done;
}

/**
 * Writes rows of which none is there yet, and their spans. The caller's transaction fails with a unique violation
 * where one is: `mergeRows` then does it again.
 */
export async function copyRows(
  client: pg.PoolClient,
  kind: RowKind,
  networkId: number,
  batch: RowBatch,
): Promise<void> {
  if (batch.rows === 0) return;
  await copy(client, tableOf(kind, networkId), COLUMNS[kind], batch.chunks);
  await addSpans(client, networkId, batch.spans);
}

/** Writes rows of which some may be there: those are left as they are. */
export async function mergeRows(
  client: pg.PoolClient,
  kind: RowKind,
  networkId: number,
  batch: RowBatch,
): Promise<void> {
  if (batch.rows === 0) return;
  const table = tableOf(kind, networkId);
  await client.query(`create temp table incoming (like ${table}) on commit drop`);
  await copy(client, 'incoming', COLUMNS[kind], batch.chunks);
  const [contract, event] = kind === 'events' ? ['contract_id', 'event_id'] : ['0', '0'];
  // Above the floor spans are of one block each, so that a reorganisation can take them back.
  const perBlock = batch.spans.every((span) => span.fromBlock === span.toBlock);
  const { rows } = await client.query<SpanDraft>(`
    with added as (insert into ${table} select * from incoming on conflict do nothing returning *)
    select ${contract}::integer as "contractId", ${event}::integer as "eventId", min(block_number) as "fromBlock",
      max(block_number) as "toBlock", min("timestamp") as "fromTimestamp", max("timestamp") as "toTimestamp", count(*) as rows
    from added group by 1, 2${perBlock ? ', block_number' : ''}`);
  await addSpans(client, networkId, rows);
  await client.query('drop table incoming');
}

async function addSpans(
  client: pg.PoolClient,
  networkId: number,
  spans: readonly SpanDraft[],
): Promise<void> {
  if (spans.length === 0) return;
  const column = (key: keyof SpanDraft) => spans.map((span) => span[key]);
  await client.query(
    `insert into indexer_spans as old
       (network_id, contract_id, event_id, from_block, to_block, from_timestamp, to_timestamp, rows)
     select $1, * from unnest($2::integer[], $3::integer[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[])
     on conflict (network_id, contract_id, event_id, from_block) do update set
       to_block = greatest(old.to_block, excluded.to_block), rows = old.rows + excluded.rows,
       from_timestamp = least(old.from_timestamp, excluded.from_timestamp),
       to_timestamp = greatest(old.to_timestamp, excluded.to_timestamp)`,
    [
      networkId,
      column('contractId'),
      column('eventId'),
      column('fromBlock'),
      column('toBlock'),
      column('fromTimestamp'),
      column('toTimestamp'),
      column('rows'),
    ],
  );
}
