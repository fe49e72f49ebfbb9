import { END, formatBound, parseBound, type ShortKey, START, sharedText } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../db/schema.ts';
import { type StoredMessage, verifiedOf } from '../messages/stored.ts';
import { erasedText, isErased } from './forgotten.ts';
import { FRAMES_BYTES } from './frames.ts';
import type { NodeSet } from './node-set.ts';

/** Messages in one page of the bulk transfer. */
export const PAGE_MESSAGES = 2_000;
/** Rows that are read at once: their texts may be a megabyte each. */
const ROWS_AT_ONCE = 250;

/** Parsing contents would cost more than all the rest, and only an upload's is passed on. */
interface SharedRow extends StoredMessage {
  readonly lacks_content: boolean;
}

const textOf = (row: SharedRow) =>
  isErased(row.status, row.lacks_content) ? erasedText(row) : sharedText(verifiedOf(row));

async function readTexts(db: Kysely<Schema>, names: readonly string[]): Promise<string[]> {
  const { rows } = await sql<SharedRow>`
    select item_hash, form, chain, sender, signed_sender, owner, type, channel, "time", content_type, subject, tags,
      source_text, signature, status, noted_ms, content is null as lacks_content,
      case form when 'upload' then content end as content
    from messages where item_hash = any(${names}::text[])`.execute(db);
  const byName = new Map(rows.map((row) => [row.item_hash, row]));
  return names.flatMap((name) => {
    const row = byName.get(name);
    return row ? (textOf(row) ?? []) : [];
  });
}

/** Texts of messages in their order, up to the bytes of one body. @returns how many of them were looked at */
async function readSome(
  db: Kysely<Schema>,
  names: readonly string[],
): Promise<{ texts: string[]; looked: number }> {
  const texts: string[] = [];
  let sizeBytes = 0;
  let looked = 0;
  while (looked < names.length && sizeBytes < FRAMES_BYTES) {
    const some = names.slice(looked, looked + ROWS_AT_ONCE);
    looked += some.length;
    for (const text of await readTexts(db, some)) {
      texts.push(text);
      sizeBytes += Buffer.byteLength(text);
    }
  }
  return { texts, looked };
}

/** The messages that a peer asked for by name: those that are here, and as many as one body takes. */
export async function readWanted(
  db: Kysely<Schema>,
  set: NodeSet,
  wanted: readonly ShortKey[],
): Promise<string[]> {
  const keys = wanted.flatMap((short) => set.index.find(short) ?? []);
  return (
    await readSome(
      db,
      keys.map((key) => set.nameOf(key)),
    )
  ).texts;
}

/**
 * A page of all messages in their order.
 * @param place where the page begins; '' for the start
 * @returns next: where the next page begins; null after the last one
 */
export async function readPage(
  db: Kysely<Schema>,
  set: NodeSet,
  place: string,
): Promise<{ texts: string[]; next: string | null }> {
  const { index } = set;
  const from = index.rank(place === '' ? START : parseBound(place));
  const to = Math.min(from + PAGE_MESSAGES, index.rank(END));
  // Ids are views into the index, which may change while the rows are read.
  const keys = Array.from({ length: to - from }, (_, at) => {
    const { time, id } = index.keyAt(from + at);
    return { time, id: id.slice() };
  });
  const following = to < index.size ? index.keyAt(to) : undefined;
  const end = following && formatBound({ time: following.time, prefix: following.id });
  const { texts, looked } = await readSome(
    db,
    keys.map((key) => set.nameOf(key)),
  );
  const rest = keys[looked];
  const next = rest ? formatBound({ time: rest.time, prefix: rest.id }) : (end ?? null);
  return { texts, next };
}
