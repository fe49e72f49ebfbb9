import { END, formatBound, parseBound, type ShortKey, START } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import { readSharedTexts } from '../../state/messages/shared.ts';
import type { Schema } from '../../store/schema.ts';
import { FRAMES_BYTES } from './frames.ts';
import type { NodeSet } from './node-set.ts';

/** Messages in one page of the bulk transfer. */
export const PAGE_MESSAGES = 2_000;

/** The messages that a peer asked for by name: those that are here, and as many as one body takes. */
export async function readWanted(
  db: Kysely<Schema>,
  set: NodeSet,
  wanted: readonly ShortKey[],
): Promise<string[]> {
  const keys = wanted.flatMap((short) => set.index.find(short) ?? []);
  const names = keys.map((key) => set.nameOf(key));
  return [...(await readSharedTexts(db, names, FRAMES_BYTES)).texts.values()];
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
  const names = keys.map((key) => set.nameOf(key));
  const placeAt = (at: number) => ({ time: keys[at]!.time, hash: names[at]! });
  const span = keys.length === 0 ? undefined : { from: placeAt(0), to: placeAt(keys.length - 1) };
  const { texts, looked } = await readSharedTexts(db, names, FRAMES_BYTES, span);
  const rest = keys[looked];
  const next = rest ? formatBound({ time: rest.time, prefix: rest.id }) : (end ?? null);
  return { texts: [...texts.values()], next };
}
