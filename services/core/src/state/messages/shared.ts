import { envelopeText, LIMITS, sharedText } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import { erasedText, isErased } from '../../intake/erased.ts';
import { type StoredMessage, verifiedOf } from '../../intake/stored.ts';
import { messagesOf } from '../../store/messages-by-key.ts';
import type { Schema } from '../../store/schema.ts';

/** What an envelope is passed on as. Rows that are wide take longer to parse than anything else here. */
async function readEnvelopes(db: Kysely<Schema>, names: readonly string[]): Promise<Map<string, string>> {
  const { rows } = await sql<Envelope>`
    select m.item_hash, source_text as text, signature, sender, noted_ms as "notedMs" from ${messagesOf(names)}
    where form = 'envelope' and source_text is not null and (status <> 'forgotten' or content is not null)`.execute(
    db,
  );
  return new Map(
    rows.map((row) => [row.item_hash, envelopeText(row.text, row.signature, row.sender, row.notedMs)]),
  );
}

interface Envelope {
  readonly item_hash: string;
  readonly text: string;
  readonly signature: string;
  readonly sender: string;
  readonly notedMs: number | null;
}

/** Parsing contents would cost more than all the rest, and only an upload's is passed on. */
interface SharedRow extends StoredMessage {
  readonly lacks_content: boolean;
}

const textOf = (row: SharedRow) =>
  isErased(row.status, row.lacks_content) ? erasedText(row) : sharedText(verifiedOf(row));

async function readOthers(db: Kysely<Schema>, names: readonly string[]): Promise<Map<string, string>> {
  if (names.length === 0) return new Map();
  const { rows } = await sql<SharedRow>`
    select m.item_hash, form, chain, sender, signed_sender, owner, type, channel, "time", sent_time, content_type, subject, tags,
      source_text, signature, status, noted_ms, content is null as lacks_content,
      case form when 'upload' then content end as content
    from ${messagesOf(names)}`.execute(db);
  return new Map(
    rows.flatMap((row) => {
      const text = textOf(row);
      return text === undefined ? [] : [[row.item_hash, text] as const];
    }),
  );
}

/** Messages as nodes pass them on (protocol's sync/shared.ts), by their hash: those that are here. */
export async function readSharedTexts(
  db: Kysely<Schema>,
  names: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const envelopes = await readEnvelopes(db, names);
  const others = await readOthers(
    db,
    names.filter((name) => !envelopes.has(name)),
  );
  return new Map([...envelopes, ...others]);
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
 * The same for readers who check what they are told. What was erased has nothing to check, and a long text is told by the
 * message itself: neither is among them.
 */
export async function readProvable(
  db: Kysely<Schema>,
  names: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (names.length === 0) return new Map();
  const { rows } = await sql<{ item_hash: string }>`
    select item_hash from messages where item_hash = any(${names}::text[])
      and coalesce(octet_length(source_text), 0) <= ${LIMITS.listedBodyBytes}
      and (status <> 'forgotten' or content is not null)`.execute(db);
  return readSharedTexts(
    db,
    rows.map((row) => row.item_hash),
  );
}
