import type { MessageStatus, SyncFields, SyncKey } from '@skerry/protocol';
import { syncKeyOf } from '@skerry/protocol';
import { sql, type Transaction } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import type { Candidate } from './decided.ts';
import { fieldsOfRow, type KeyColumns } from './statement.ts';

/** A message as it is kept, as far as whoever brings it again is concerned. */
export interface Known {
  readonly sender: string;
  readonly status: MessageStatus;
  readonly shape: number | null;
  readonly decideByMs: number;
  readonly fields: SyncFields;
  readonly key: SyncKey;
}

/** What is kept of the batch's messages already, by item hash. */
export async function loadKnown(
  trx: Transaction<Schema>,
  batch: readonly Candidate[],
): Promise<Map<string, Known>> {
  const hashes = batch.map(({ accepted }) => accepted.message.itemHash);
  const { rows } = await sql<
    KeyColumns & { status: MessageStatus; shape: number | null; decide_by_ms: number }
  >`
    select item_hash, form, sender, channel, "time", sent_time, tags, noted_ms, status, shape, decide_by_ms
    from messages where item_hash = any(${hashes})`.execute(trx);
  return new Map(
    rows.map((row) => {
      const fields = fieldsOfRow(row);
      const { sender, status, shape, decide_by_ms: decideByMs } = row;
      return [row.item_hash, { sender, status, shape, decideByMs, fields, key: syncKeyOf(fields) }];
    }),
  );
}
