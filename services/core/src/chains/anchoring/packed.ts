import { type Kysely, sql, type Transaction } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import type { ArchivedRow } from './archive.ts';

/** Archives that this node made (table `packed_archives`), and the messages that are to be packed. */

export interface PackedArchive {
  readonly id: number;
  readonly cid: string;
  readonly transactionHash: string | null;
  readonly nonce: number | null;
  /** Wei. */
  readonly maxFee: string | null;
  readonly sends: number;
  /** Milliseconds since 1970. */
  readonly sentMs: number | null;
  /** The block that has it now; null where none has. */
  readonly block: number | null;
  /** Whether what it confirms is written, but for what cannot be taken yet. */
  readonly isRead: boolean;
}

type Db = Kysely<Schema> | Transaction<Schema>;

/** Archives that may still leave the chain, oldest first. */
export async function listOpen(db: Db, network: string): Promise<PackedArchive[]> {
  const { rows } = await sql<PackedArchive>`
    select p.id, p.cid, p.tx_hash as "transactionHash", p.nonce, p.max_fee::text as "maxFee", p.sends,
      p.sent_ms as "sentMs", e.block_number as block, coalesce(e.state <> 'waiting' or e.is_later, false) as "isRead"
    from packed_archives p left join lateral (
      select block_number, state, reason ? 'later' as is_later from anchor_events a
      where a.network = p.network and a.cid = p.cid
      order by block_number limit 1) e on true
    where p.network = ${network} and not p.settled order by p.id`.execute(db);
  return rows;
}

/** What is in a block that never changes needs no more attention. */
export async function settlePacked(db: Db, network: string, settledBlock: number): Promise<void> {
  await sql`
    update packed_archives p set settled = true where network = ${network} and not settled and exists (
      select from anchor_events e where e.network = p.network and e.cid = p.cid
        and e.state <> 'waiting' and e.block_number <= ${settledBlock})`.execute(db);
}

/** Archives whose events stood in blocks that never change, as an endpoint that lied had said: they may be in other ones. */
export async function unsettlePacked(
  db: Db,
  network: string,
  gone: readonly { readonly cid: string | null }[],
): Promise<void> {
  const cids = gone.flatMap(({ cid }) => cid ?? []);
  if (cids.length === 0) return;
  await sql`update packed_archives set settled = false
    where network = ${network} and settled and cid = any(${cids}::text[])`.execute(db);
}

/** The chain was started anew: nothing that was sent is on it. */
export async function reopenPacked(db: Db, network: string): Promise<void> {
  await sql`update packed_archives set settled = false, tx_hash = null, nonce = null, max_fee = null, sent_ms = null
    where network = ${network}`.execute(db);
}

export async function loadPackedSeq(db: Db, network: string): Promise<number> {
  const row = await db
    .selectFrom('anchor_networks')
    .select('packed_seq')
    .where('network', '=', network)
    .executeTakeFirst();
  return row?.packed_seq ?? 0;
}

/** A part of the log of events, by their numbers: after the first up to the last. */
export interface PackedPart {
  readonly after: number;
  readonly seq: number;
}

/**
 * Notes how far is packed, with the archive that came of it, if one did.
 * @returns false where another process has packed this part meanwhile: nothing is noted
 */
export function notePacked(
  db: Kysely<Schema>,
  network: string,
  { after, seq }: PackedPart,
  archive: { readonly cid: string; readonly messages: number } | undefined,
  nowMs: number,
): Promise<boolean> {
  return db.transaction().execute(async (trx) => {
    await sql`insert into anchor_networks (network) values (${network}) on conflict do nothing`.execute(trx);
    const { numAffectedRows } = await sql`
      update anchor_networks set packed_seq = ${seq} where network = ${network} and packed_seq = ${after}`.execute(
      trx,
    );
    if ((numAffectedRows ?? 0n) === 0n) return false;
    if (!archive) return true;
    await trx
      .insertInto('packed_archives')
      .values({ network, cid: archive.cid, messages: archive.messages, made_ms: nowMs })
      .execute();
    return true;
  });
}

/** @returns false where another process has sent it since it was read: nothing is noted, and nothing is to be sent */
export async function noteSent(
  db: Db,
  { id, sends }: Pick<PackedArchive, 'id' | 'sends'>,
  sent: { readonly hash: string; readonly nonce: number; readonly maxFee: bigint },
  nowMs: number,
): Promise<boolean> {
  const { numAffectedRows } =
    await sql`update packed_archives set tx_hash = ${sent.hash}, nonce = ${sent.nonce},
      max_fee = ${sent.maxFee.toString()}, sends = sends + 1, sent_ms = ${nowMs} where id = ${id} and sends = ${sends}`.execute(
      db,
    );
  return (numAffectedRows ?? 0n) > 0n;
}

/** A place in the log of events, and the message that it speaks of where that is to be packed. */
export type LoggedMessage = { readonly seq: number } & (ArchivedRow | { readonly item_hash: null });

/** What an archive says of a message beside its text, about. */
const ADDED_BYTES = 512;

/**
 * Messages in force that nothing confirms, by the events that tell of them; one row for each event.
 * @param limit of events that are looked at, and of bytes that the messages have together: the last one may go beyond
 */
export async function listUnconfirmed(
  db: Db,
  afterSeq: number,
  upToSeq: number,
  limit: { readonly events: number; readonly bytes: number },
): Promise<LoggedMessage[]> {
  // Texts that do not fit are not read, and neither are contents that are files, which an archive does not hold.
  const { rows } = await sql<LoggedMessage>`
    select seq, item_hash, form, chain, sender, signed_sender, type, channel, "time", sent_time, tags, source_text, signature,
      case form when 'upload' then content end as content
    from (
      select seq, m.*, bytes, sum(bytes) over (order by seq rows unbounded preceding) as upto
      from (
        select seq, kind, data from events where seq > ${afterSeq} and seq <= ${upToSeq} order by seq limit ${limit.events}) e
      left join messages m on e.kind in ('message', 'message_unconfirmed') and m.item_hash = e.data ->> 'item_hash'
        and m.status = 'processed' and not exists (
          select from confirmations c where c.item_hash = m.item_hash and c.sender = m.sender),
      lateral (select case when m.item_hash is null then 0
        else coalesce(octet_length(m.source_text), 0) + ${sql.lit(ADDED_BYTES)} end as bytes) b) s
    where upto - bytes < ${limit.bytes}
    order by seq`.execute(db);
  return rows;
}
