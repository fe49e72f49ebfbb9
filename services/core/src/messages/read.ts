import type { MessageView } from '@skerry/protocol';
import { type Kysely, type Selectable, sql } from 'kysely';
import type { Page } from '../db/page.ts';
import type { Schema } from '../db/schema.ts';

export interface MessageFilter {
  readonly hashes?: readonly string[] | undefined;
  readonly addresses?: readonly string[] | undefined;
  readonly channels?: readonly string[] | undefined;
  readonly types?: readonly string[] | undefined;
}

type Row = Selectable<Schema['messages']>;

/** A message as it is served. The content comes from the signed text, so that keys and numbers stand as they were signed. */
function viewOf(row: Row): MessageView {
  return {
    item_hash: row.item_hash,
    chain: row.chain,
    sender: row.sender,
    type: row.type,
    channel: row.channel,
    timestamp: row.timestamp,
    content: contentOf(row),
    signature: row.signature,
    signed_text: row.signed_text,
    confirmations: [],
  };
}

/** An uploaded file's message signs the file's hash alone; its content was written by the node that took it. */
function contentOf(row: Row): unknown {
  if (!row.signed_text.startsWith('{')) return row.content;
  return (JSON.parse(row.signed_text) as { content: unknown }).content;
}

export async function findMessage(db: Kysely<Schema>, hash: string): Promise<MessageView | undefined> {
  const row = await db.selectFrom('messages').selectAll().where('item_hash', '=', hash).executeTakeFirst();
  return row && viewOf(row);
}

/** Newest first; equal times by item hash. `total` counts everything that fits the filter. */
export async function listMessages(
  db: Kysely<Schema>,
  filter: MessageFilter,
  page: Page,
): Promise<{ messages: MessageView[]; total: number }> {
  let query = db.selectFrom('messages');
  const columns = { hashes: 'item_hash', addresses: 'sender', channels: 'channel', types: 'type' } as const;
  for (const [name, column] of Object.entries(columns) as [
    keyof typeof columns,
    (typeof columns)[keyof typeof columns],
  ][]) {
    const values = filter[name];
    if (values) query = query.where(column, 'in', [...values]);
  }
  const rows = await query
    .selectAll()
    .orderBy('timestamp', 'desc')
    .orderBy('item_hash')
    .limit(page.limit)
    .offset(page.offset)
    .execute();
  const counted = await query.select(sql<number>`count(*)`.as('total')).executeTakeFirstOrThrow();
  return { messages: rows.map(viewOf), total: Number(counted.total) };
}
