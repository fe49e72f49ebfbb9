import { envelopeText, LIMITS, sharedText } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import { erasedText } from '../../intake/erased.ts';
import { isErased, type StoredMessage, verifiedOf } from '../../intake/stored.ts';
import { messagesOf } from '../../store/messages-by-key.ts';
import type { Schema } from '../../store/schema.ts';

/** What JSON adds to a message's text, about. */
const ADDED_BYTES = 512;

interface Found {
  readonly item_hash: string;
  /** Its place among the names, from 1. */
  readonly nth: number;
  /** Bytes of it and of those before it. */
  readonly upto: number;
  /** Of an envelope, which is what nearly all are; null of others. */
  readonly text: string | null;
  readonly signature: string;
  readonly sender: string;
  readonly notedMs: number | null;
}

/**
 * The first of some messages, those that are here, until they have so many bytes; the last one may go beyond. Each is looked up
 * once, and the texts that do not fit, of up to a megabyte, are not read. Rows that are wide take longer to parse than anything else here.
 */
async function findFirst(
  db: Kysely<Schema>,
  names: readonly string[],
  limitBytes: number,
): Promise<readonly Found[]> {
  const { rows } = await sql<Found>`
    select item_hash, nth::int as nth, upto::float8 as upto, case when is_envelope then source_text end as text, signature, sender, noted_ms as "notedMs"
    from (
      select m.item_hash, nth, source_text, signature, sender, noted_ms, bytes, sum(bytes) over (order by nth rows unbounded preceding) as upto,
        form = 'envelope' and source_text is not null and (status <> 'forgotten' or content is not null) as is_envelope
      from ${messagesOf(names)}, lateral (select coalesce(octet_length(source_text), 0) + ${ADDED_BYTES}::int as bytes) b
    ) s
    where upto - bytes < ${limitBytes}
    order by nth`.execute(db);
  return rows;
}

/** Parsing contents would cost more than all the rest, and only an upload's is passed on. */
interface SharedRow extends StoredMessage {
  readonly lacks_content: boolean;
}

const textOf = (row: SharedRow) =>
  isErased(row, row.lacks_content) ? erasedText(row) : sharedText(verifiedOf(row));

async function readOthers(db: Kysely<Schema>, names: readonly string[]): Promise<Map<string, string>> {
  if (names.length === 0) return new Map();
  const { rows } = await sql<SharedRow>`
    select m.item_hash, form, chain, sender, signed_sender, owner, type, channel, "time", sent_time, content_type, subject, tags,
      source_text, erased, signature, status, noted_ms, content is null as lacks_content,
      case form when 'upload' then content end as content
    from ${messagesOf(names)}`.execute(db);
  return new Map(
    rows.flatMap((row) => {
      const text = textOf(row);
      return text === undefined ? [] : [[row.item_hash, text] as const];
    }),
  );
}

/**
 * Messages as nodes pass them on (protocol's sync/shared.ts), by their hash: those that are here, and about so many bytes of them.
 * @returns looked: how many of the names were looked at
 */
export async function readSharedTexts(
  db: Kysely<Schema>,
  names: readonly string[],
  limitBytes = Number.MAX_SAFE_INTEGER,
): Promise<{ readonly texts: ReadonlyMap<string, string>; readonly looked: number }> {
  const found = await findFirst(db, names, limitBytes);
  const others = await readOthers(
    db,
    found.flatMap((row) => (row.text === null ? [row.item_hash] : [])),
  );
  const texts = found.flatMap((row) => {
    const { item_hash: name, text } = row;
    const shared =
      text === null ? others.get(name) : envelopeText(text, row.signature, row.sender, row.notedMs);
    return shared === undefined ? [] : [[name, shared] as const];
  });
  const last = found.at(-1);
  return { texts: new Map(texts), looked: last && last.upto >= limitBytes ? last.nth : names.length };
}

/** Rows with what proves them. @param isWanted whether that was asked for */
export async function addProvable<Row extends { readonly item_hash: string }>(
  db: Kysely<Schema>,
  rows: readonly Row[],
  isWanted: boolean,
): Promise<(Row & { shared?: string | null })[]> {
  if (!isWanted) return [...rows];
  const texts = await readProvable(
    db,
    rows.map((row) => row.item_hash),
  );
  return rows.map((row) => ({ ...row, shared: texts.get(row.item_hash) ?? null }));
}

/**
 * The same for readers who check what they are told. What was erased has nothing to check, what was rejected and is named by a FORGET is
 * not shown, and a long text is told by the message itself: none of them is among them.
 */
export async function readProvable(
  db: Kysely<Schema>,
  names: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (names.length === 0) return new Map();
  const { rows } = await sql<{ item_hash: string }>`
    select item_hash from messages where item_hash = any(${names}::text[])
      and coalesce(octet_length(source_text), 0) <= ${LIMITS.listedBodyBytes}
      and erased is null and (status <> 'forgotten' or content is not null)
      and (status <> 'rejected' or not exists (select from forgets where target = item_hash))`.execute(db);
  const here = rows.map((row) => row.item_hash);
  return (await readSharedTexts(db, here)).texts;
}
