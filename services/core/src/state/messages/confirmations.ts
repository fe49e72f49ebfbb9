import type { Writer } from '@skerry/database';
import { type Kysely, sql, type Transaction } from 'kysely';
import type { StoredMessage } from '../../intake/stored.ts';
import { appendEvents, type EventDraft } from '../../notify/events/append.ts';
import { isLateRow } from '../../store/messages/effective.ts';
import type { Schema } from '../../store/schema.ts';
import { lockWrites } from '../../store/write-lock.ts';

/** That a chain has a message: in an archive that a transaction named. */
export interface Confirmation {
  readonly chain: string;
  readonly height: number;
  /** Of the transaction. */
  readonly hash: string;
}

/** One event of a chain that names an archive. */
export interface AnchorPlace {
  readonly network: string;
  readonly blockNumber: number;
  readonly logIndex: number;
}

/** Confirmations of one message that are shown; the oldest ones. */
const SHOWN_MAX = 16;

export type Confirmations = ReadonlyMap<string, readonly Confirmation[]>;

/** Confirmations of the message `m` of a query, lowest block first, as JSON; null where there are none. */
export const shownConfirmations = sql<readonly Confirmation[] | null>`(
  select jsonb_agg(jsonb_build_object('chain', c.chain, 'height', c.height, 'hash', c.hash) order by c.height, c.hash)
  from (
    select distinct chain, block_number as height, tx_hash as hash from confirmations
    where item_hash = m.item_hash and sender = m.sender order by 2, 3 limit ${sql.lit(SHOWN_MAX)}) c)`;

/** Confirmations of messages by item hash. Those of another sender's copy of a hash are left out. */
export async function loadConfirmations(
  db: Kysely<Schema>,
  messages: readonly { readonly item_hash: string; readonly sender: string }[],
): Promise<Confirmations> {
  if (messages.length === 0) return new Map();
  const { rows } = await sql<{ item_hash: string; shown: readonly Confirmation[] | null }>`
    select m.item_hash, ${shownConfirmations} as shown
    from unnest(
      ${messages.map((one) => one.item_hash)}::text[], ${messages.map((one) => one.sender)}::text[]) as m (item_hash, sender)`.execute(
    db,
  );
  return new Map(rows.map(({ item_hash, shown }) => [item_hash, shown ?? []]));
}

interface HeaderRow {
  readonly item_hash: string;
  readonly type: string;
  readonly sender: string;
  readonly channel: string | null;
  readonly timestamp: number;
  readonly content_type: string | null;
  readonly tags: string[];
}

const confirmedEvent = ({ tags, timestamp, ...row }: HeaderRow, confirmation: Confirmation): EventDraft => ({
  kind: 'message_confirmed',
  data: {
    ...row,
    timestamp: Math.floor(timestamp),
    ...(tags.length > 0 ? { tags } : {}),
    confirmation,
  },
});

/** Messages of an event that no other event confirms. */
async function listOnlyHere(trx: Transaction<Schema>, place: AnchorPlace): Promise<HeaderRow[]> {
  const { network, blockNumber, logIndex } = place;
  const { rows } = await sql<HeaderRow>`
    select m.item_hash, m.type, m.sender, m.channel, m."time" as timestamp, m.content_type, m.tags
    from confirmations c join messages m on m.item_hash = c.item_hash and m.sender = c.sender
    where c.network = ${network} and c.block_number = ${blockNumber} and c.log_index = ${logIndex}
      and m.status = 'processed' and not exists (
        select from confirmations o where o.item_hash = c.item_hash and o.sender = c.sender
          and (o.network, o.block_number, o.log_index) <> (c.network, c.block_number, c.log_index))
    order by m.item_hash`.execute(trx);
  return rows;
}

/**
 * Writes that an event confirms messages, and tells of those that nothing confirmed before.
 *
 * @param isCurrent whether the event still stands, asked under the lock
 * @returns whether it was written
 */
export async function confirmMessages(
  writer: Writer<Schema>,
  place: AnchorPlace,
  confirmation: Confirmation,
  messages: readonly { readonly itemHash: string; readonly sender: string }[],
  { isCurrent, nowMs }: { isCurrent: (trx: Transaction<Schema>) => Promise<boolean>; nowMs: number },
): Promise<boolean> {
  const { trx } = writer;
  const { lastSeq } = await lockWrites(trx);
  if (!(await isCurrent(trx))) return false;
  const { rows: written } = await sql<{ item_hash: string }>`
    insert into confirmations (item_hash, chain, network, block_number, log_index, tx_hash, sender)
    select distinct on (item_hash) item_hash, ${confirmation.chain}, ${place.network}, ${place.blockNumber}::bigint,
      ${place.logIndex}::integer, ${confirmation.hash}, sender
    from unnest(
      ${messages.map((one) => one.itemHash)}::text[], ${messages.map((one) => one.sender)}::text[]) as t (item_hash, sender)
    on conflict do nothing returning item_hash`.execute(trx);
  // An archive may be read again, for what was ahead of the clock the first time.
  const fresh = new Set(written.map((row) => row.item_hash));
  const events = (await listOnlyHere(trx, place))
    .filter((row) => fresh.has(row.item_hash))
    .map((row) => confirmedEvent(row, confirmation));
  await appendEvents(writer, lastSeq, events, nowMs);
  return true;
}

/** Takes back what an event confirmed, and tells of the messages that nothing confirms any more. */
export async function unconfirmMessages(
  writer: Writer<Schema>,
  place: AnchorPlace,
  confirmation: Confirmation,
  nowMs: number,
): Promise<void> {
  const { trx } = writer;
  const { lastSeq } = await lockWrites(trx);
  const lost = await listOnlyHere(trx, place);
  await trx
    .deleteFrom('confirmations')
    .where('network', '=', place.network)
    .where('block_number', '=', place.blockNumber)
    .where('log_index', '=', place.logIndex)
    .execute();
  const events = lost.map(
    ({ item_hash }): EventDraft => ({
      kind: 'message_unconfirmed',
      data: { item_hash, confirmation },
    }),
  );
  await appendEvents(writer, lastSeq, events, nowMs);
}

/** From what: messages of an event that are known to be there only since later than its block. */
const notedAfter = ({ network, blockNumber, logIndex }: AnchorPlace, blockTime: number) => sql`
  confirmations c join messages m on m.item_hash = c.item_hash and m.sender = c.sender
    and c.network = ${network} and c.block_number = ${blockNumber} and c.log_index = ${logIndex}
    and ${isLateRow('m')} and m.noted_ms > ${blockTime}::bigint * 1000`;

/** @param limit of messages, and of bytes that they have together with contents that are files: the last one may go beyond */
export async function listNotedAfter(
  db: Kysely<Schema>,
  place: AnchorPlace,
  blockTime: number,
  after: string,
  limit: { readonly rows: number; readonly bytes: number },
): Promise<StoredMessage[]> {
  const { rows } = await sql<StoredMessage>`
    select * from (
      select m.*, bytes, sum(bytes) over (order by m.item_hash rows unbounded preceding) as upto from (
        select m.* from ${notedAfter(place, blockTime)} where c.item_hash > ${after}
        order by c.item_hash limit ${limit.rows}) m
      left join files f on f.hash = m.item_hash,
      lateral (select coalesce(octet_length(m.source_text), f.size_bytes, 0) as bytes) b) s
    where upto - bytes < ${limit.bytes} order by item_hash`.execute(db);
  return rows;
}

/** Whether there is one that is not among those of some hashes. */
export async function isAnyNotedAfter(
  trx: Transaction<Schema>,
  place: AnchorPlace,
  blockTime: number,
  but: readonly string[],
): Promise<boolean> {
  const { rows } = await sql`
    select from ${notedAfter(place, blockTime)} where c.item_hash <> all(${but}::text[]) limit 1`.execute(
    trx,
  );
  return rows.length > 0;
}

/** Late messages that are new here and confirmed already: the dates of what confirms them are looked at again. */
export async function dateAgain(trx: Transaction<Schema>, itemHashes: readonly string[]): Promise<void> {
  if (itemHashes.length === 0) return;
  await sql`
    update anchor_events e set dated = false from confirmations c
    where c.item_hash = any(${itemHashes}::text[]) and e.dated
      and e.network = c.network and e.block_number = c.block_number and e.log_index = c.log_index`.execute(
    trx,
  );
}
