import { END, formatBound, parseBound, type ShortKey, START } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import { readSharedTexts } from '../../state/messages/shared.ts';
import { messagesOf } from '../../store/messages-by-key.ts';
import type { Schema } from '../../store/schema.ts';
import { FRAMES_BYTES } from './frames.ts';
import type { NodeSet } from './node-set.ts';

/** Messages in one page of the bulk transfer. */
export const PAGE_MESSAGES = 2_000;
/** What JSON adds to a message's text, about. */
const ADDED_BYTES = 512;

/** How many of the messages fit into so many bytes; the last one may go beyond. Texts may be a megabyte each: they are not read. */
async function countFitting(
  db: Kysely<Schema>,
  names: readonly string[],
  limitBytes: number,
): Promise<number> {
  const { rows } = await sql<{ item_hash: string; bytes: number | null }>`
    select m.item_hash, octet_length(source_text) as bytes from ${messagesOf(names)}`.execute(db);
  const bytesOf = new Map(rows.map((row) => [row.item_hash, row.bytes]));
  let sizeBytes = 0;
  for (const [at, name] of names.entries()) {
    sizeBytes += (bytesOf.get(name) ?? 0) + ADDED_BYTES;
    if (sizeBytes >= limitBytes) return at + 1;
  }
  return names.length;
}

/** Texts of the first of some messages, as many as fit. @returns how many of them were looked at */
export async function readSome(
  db: Kysely<Schema>,
  names: readonly string[],
  limitBytes: number,
): Promise<{ texts: string[]; looked: number }> {
  const looked = await countFitting(db, names, limitBytes);
  const some = names.slice(0, looked);
  const texts = await readSharedTexts(db, some);
  return { texts: some.flatMap((name) => texts.get(name) ?? []), looked };
}

/** The messages that a peer asked for by name: those that are here, and as many as one body takes. */
export async function readWanted(
  db: Kysely<Schema>,
  set: NodeSet,
  wanted: readonly ShortKey[],
): Promise<string[]> {
  const keys = wanted.flatMap((short) => set.index.find(short) ?? []);
  const names = keys.map((key) => set.nameOf(key));
  return (await readSome(db, names, FRAMES_BYTES)).texts;
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
    FRAMES_BYTES,
  );
  const rest = keys[looked];
  const next = rest ? formatBound({ time: rest.time, prefix: rest.id }) : (end ?? null);
  return { texts, next };
}
