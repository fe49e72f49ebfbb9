import { envelopeText, LIMITS, sharedText } from '@skerry/protocol';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import { erasedText } from '../../intake/erased.ts';
import { isErased, type StoredMessage, verifiedOf } from '../../intake/stored.ts';
import { messagesOf } from '../../store/messages-by-key.ts';
import type { Schema } from '../../store/schema.ts';
import { meansIndex } from '../lists/driver.ts';

/** What JSON adds to a message's text, about. */
const ADDED_BYTES = 512;

interface Found {
  readonly item_hash: string;
  readonly bytes: number;
  /** Of an envelope, which is what nearly all are; null of others. */
  readonly text: string | null;
  readonly signature: string;
  readonly sender: string;
  readonly notedMs: number | null;
}

/** What is found of some names, in their order, and how many of them were looked at. */
interface Looked {
  readonly found: readonly Found[];
  readonly looked: number;
}

/**
 * The first of the messages `m` until they have so many bytes; the last one may go beyond. Each is looked up once, and the texts that do
 * not fit, of up to a megabyte, are not read. Rows that are wide take longer to parse than anything else here.
 */
const firstOf = (messages: RawBuilder<unknown>, order: RawBuilder<unknown>, limitBytes: number) => sql<Found>`
  select item_hash, bytes::float8 as bytes, case when is_envelope then source_text end as text, signature, sender, noted_ms as "notedMs"
  from (
    select m.item_hash, source_text, signature, sender, noted_ms, bytes, sum(bytes) over (order by ${order} rows unbounded preceding) as upto,
      form = 'envelope' and source_text is not null and (status <> 'forgotten' or content is not null) as is_envelope
    from ${messages}, lateral (select coalesce(octet_length(source_text), 0) + ${ADDED_BYTES}::int as bytes) b
  ) s
  where upto - bytes < ${limitBytes}
  order by upto`;

/** How many names were looked at for what was found of them. */
function countLooked(names: readonly string[], found: readonly Found[], limitBytes: number): number {
  const isFull = found.reduce((sum, { bytes }) => sum + bytes, 0) >= limitBytes;
  return isFull ? names.indexOf(found.at(-1)!.item_hash) + 1 : names.length;
}

/** By their names, each in its own place of the index and of the table. */
async function findNamed(db: Kysely<Schema>, names: readonly string[], limitBytes: number): Promise<Looked> {
  if (names.length === 0) return { found: [], looked: 0 };
  const { rows } = await firstOf(messagesOf(names), sql`nth`, limitBytes).execute(db);
  return { found: rows, looked: countLooked(names, rows, limitBytes) };
}

/** Where messages lie that follow each other in the order that nodes share: by time (Unix seconds), then by hash. Both ends are in it. */
export interface Span {
  readonly from: { readonly time: number; readonly hash: string };
  readonly to: { readonly time: number; readonly hash: string };
}

/**
 * Messages in force within a span, `max` in each part at most: a second may have any number of them, and with a CID as its end a part
 * has most of these. In the order of the index: where a part is large, the table would be read until it comes, be it at its end.
 */
function messagesWithin({ from, to }: Span, max: number): RawBuilder<unknown> {
  const parts =
    from.time === to.time
      ? [sql`"time" = ${from.time} and item_hash between ${from.hash} and ${to.hash}`]
      : [
          sql`"time" = ${from.time} and item_hash >= ${from.hash}`,
          sql`"time" > ${from.time} and "time" < ${to.time}`,
          sql`"time" = ${to.time} and item_hash <= ${to.hash}`,
        ];
  const selects = parts.map(
    (part) => sql`(select item_hash, "time", form, status, content, source_text, signature, sender, noted_ms
      from messages x where status = 'processed' and ${meansIndex('x', 'messages_by_time')} and ${part}
      order by "time" desc, item_hash limit ${max}::int)`,
  );
  return sql`(${sql.join(selects, sql` union all `)}) m`;
}

/**
 * By their span, in which they lie together: two thirds of what it takes by name. What is not in force, and what the order of texts has
 * elsewhere (CIDs), is looked up by name.
 */
async function findWithin(
  db: Kysely<Schema>,
  names: readonly string[],
  span: Span,
  limitBytes: number,
): Promise<Looked> {
  const places = new Map(names.map((name, at) => [name, at]));
  const order = sql`m."time", m.item_hash`;
  const { rows } = await firstOf(messagesWithin(span, names.length), order, limitBytes).execute(db);
  const within = rows.filter(({ item_hash }) => places.has(item_hash));
  const known = new Set(within.map(({ item_hash }) => item_hash));
  const reached = names.slice(0, countLooked(names, within, limitBytes));
  const { found } = await findNamed(
    db,
    reached.filter((name) => !known.has(name)),
    limitBytes,
  );
  if (found.length === 0) return { found: within, looked: reached.length };
  return upTo(
    reached,
    [...within, ...found].sort((a, b) => places.get(a.item_hash)! - places.get(b.item_hash)!),
    limitBytes,
  );
}

/** The first that have so many bytes together. */
function upTo(names: readonly string[], found: readonly Found[], limitBytes: number): Looked {
  const first: Found[] = [];
  for (let bytes = 0; bytes < limitBytes && first.length < found.length; ) {
    const next = found[first.length]!;
    bytes += next.bytes;
    first.push(next);
  }
  return { found: first, looked: countLooked(names, first, limitBytes) };
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
 * @param span of names that are in that order
 * @returns looked: how many of the names were looked at
 */
export async function readSharedTexts(
  db: Kysely<Schema>,
  names: readonly string[],
  limitBytes = Number.MAX_SAFE_INTEGER,
  span?: Span,
): Promise<{ readonly texts: ReadonlyMap<string, string>; readonly looked: number }> {
  const { found, looked } = span
    ? await findWithin(db, names, span, limitBytes)
    : await findNamed(db, names, limitBytes);
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
  return { texts: new Map(texts), looked };
}

/** Rows with what proves them. @param isWanted whether that was asked for @param textBytesMax as of `readProvable` */
export async function addProvable<Row extends { readonly item_hash: string }>(
  db: Kysely<Schema>,
  rows: readonly Row[],
  isWanted: boolean,
  textBytesMax?: number,
): Promise<(Row & { shared?: string | null })[]> {
  if (!isWanted) return [...rows];
  const texts = await readProvable(
    db,
    rows.map((row) => row.item_hash),
    textBytesMax,
  );
  return rows.map((row) => ({ ...row, shared: texts.get(row.item_hash) ?? null }));
}

/**
 * The same for readers who check what they are told. What was erased has nothing to check, what was rejected and is named by a FORGET is
 * not shown, and a text that is too long for lists is told by the message itself: none of them is among them.
 */
export async function readProvable(
  db: Kysely<Schema>,
  names: readonly string[],
  textBytesMax: number = LIMITS.listedBodyBytes,
): Promise<ReadonlyMap<string, string>> {
  if (names.length === 0) return new Map();
  const { rows } = await sql<{ item_hash: string }>`
    select item_hash from messages where item_hash = any(${names}::text[])
      and coalesce(octet_length(source_text), 0) <= ${textBytesMax}
      and erased is null and (status <> 'forgotten' or content is not null)
      and (status <> 'rejected' or not exists (select from forgets where target = item_hash))`.execute(db);
  const here = rows.map((row) => row.item_hash);
  return (await readSharedTexts(db, here)).texts;
}
