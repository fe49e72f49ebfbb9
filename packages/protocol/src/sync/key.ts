import { isLate } from '../effective-time.ts';
import type { MessageForm } from '../envelope.ts';
import { sha256Hex } from '../hash.ts';
import { bytesToHex, writeHex } from '../hex.ts';
import { isItemHash64 } from '../network-form/item-hash.ts';

/** SHA-256 of a message, or of its CID. */
const HASH_BYTES = 32;
const VARIANT_BYTES = 4;
export const SYNC_ID_BYTES = HASH_BYTES + VARIANT_BYTES;

/**
 * A message's place in the order that all nodes share: by time, then by id. The id is the item hash, and 4 bytes that
 * tell apart what no hash covers (`variantOf`): nodes that took the same message with another channel differ, and one that wants the
 * text of a message from one that has it.
 */
export interface SyncKey {
  /** Unix seconds, with fraction. */
  readonly time: number;
  readonly id: Uint8Array;
}

/** Of a message, what its key is made of. */
export interface SyncFields {
  readonly form: MessageForm;
  readonly itemHash: string;
  readonly sender: string;
  readonly channel: string | null;
  readonly time: number;
  /** Null: the same as `time`. */
  readonly sentTime: number | null;
  readonly tags: readonly string[];
  readonly notedMs: number | null;
}

/**
 * What is said of a message that neither its hash nor its signature covers, as one text; empty where there is nothing. Of
 * a late message that is also since when it is there. The same statement gives the same text on every node.
 */
export function uncoveredText(fields: Omit<SyncFields, 'itemHash'>): string {
  const { form, sender, channel, time, sentTime, tags, notedMs } = fields;
  // Of nearly every message, wherever it comes by: nothing.
  if (form === 'envelope') return isLate(fields) ? JSON.stringify([notedMs]) : '';
  const sent = sentTime === null ? [] : [[sentTime]];
  const late = isLate(fields) ? [notedMs] : [];
  return JSON.stringify([
    ...(form === 'network' ? [time, sender, channel, ...sent] : [time, channel, tags]),
    ...late,
  ]);
}

/** The hash part of an id, in hexadecimal: the item hash itself, or the SHA-256 of a CID. */
export const syncHashOf = (itemHash: string) => (isItemHash64(itemHash) ? itemHash : sha256Hex(itemHash));

/**
 * The 4 bytes are of the hash and the text together: fingerprints are sums of ids, and where the same is said of two
 * messages, two nodes that have it each of the other one would have equal sums.
 */
const variantOf = (hash: string, uncovered: string): string =>
  sha256Hex(hash + uncovered).slice(0, VARIANT_BYTES * 2);

/** What follows the uncovered text, which never ends so. */
const WANTED = 'wanted';

/** @param isWanted whether the node erased what the message says, and wants it again: it lacks the key of those that have it */
export function syncKeyOf(fields: SyncFields, isWanted = false): SyncKey {
  const hash = syncHashOf(fields.itemHash);
  const text = uncoveredText(fields) + (isWanted ? WANTED : '');
  const id = new Uint8Array(SYNC_ID_BYTES);
  writeHex(id, 0, hash);
  // Where nothing is said beside the hash: zeros.
  if (text !== '') writeHex(id, HASH_BYTES, variantOf(hash, text));
  return { time: fields.time, id };
}

/** What of a forgotten message is told without its text, and what judges its FORGET. */
export interface ForgottenFields extends Pick<SyncFields, 'itemHash' | 'sender' | 'channel' | 'time'> {
  readonly owner: string;
  readonly type: string;
  readonly contentType: string | null;
  readonly subject: string | null;
}

/**
 * A message's key among those that are forgotten, which nodes compare beside all that they have: by `syncKeyOf` one that is forgotten and
 * one that is in force are the same. Nodes that were told otherwise whose it was differ, too.
 */
export function forgottenKeyOf(fields: ForgottenFields): SyncKey {
  const { sender, owner, type, channel, contentType, subject } = fields;
  const hash = syncHashOf(fields.itemHash);
  const id = new Uint8Array(SYNC_ID_BYTES);
  writeHex(id, 0, hash);
  const told = JSON.stringify([sender, owner, type, channel, contentType, subject]);
  writeHex(id, HASH_BYTES, variantOf(hash, told));
  return { time: fields.time, id };
}

/** What stands for a key between nodes: enough of the hash that nobody finds two messages with the same. */
export const SHORT_ID_BYTES = 20;
const SHORT_HASH_BYTES = SHORT_ID_BYTES - VARIANT_BYTES;

export interface ShortKey {
  readonly time: number;
  /** The first 16 bytes of the hash and the 4 of the variant, in hexadecimal. */
  readonly id: string;
}

export const shortKeyOf = ({ time, id }: SyncKey): ShortKey => ({
  time,
  id: bytesToHex(id.subarray(0, SHORT_HASH_BYTES)) + bytesToHex(id.subarray(HASH_BYTES)),
});

/** How the hash part of a short id begins. */
export const shortHashOf = (id: string) => id.slice(0, SHORT_HASH_BYTES * 2);
export const textOfShortKey = ({ time, id }: ShortKey) => `${time}:${id}`;

/** A place between keys: before every key that is at least (time, prefix and zeros). */
export interface Bound {
  readonly time: number;
  readonly prefix: Uint8Array;
}

const NOTHING = new Uint8Array();
export const START: Bound = { time: Number.NEGATIVE_INFINITY, prefix: NOTHING };
export const END: Bound = { time: Number.POSITIVE_INFINITY, prefix: NOTHING };

export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at++) if (a[at] !== b[at]) return a[at]! - b[at]!;
  return a.length - b.length;
}

export const compareKeys = (a: SyncKey, b: SyncKey) =>
  a.time === b.time ? compareBytes(a.id, b.id) : a.time - b.time;

/** Zeros at the end of a prefix count for nothing. */
export function compareBounds(a: Bound, b: Bound): number {
  if (a.time !== b.time) return a.time < b.time ? -1 : 1;
  const length = Math.max(a.prefix.length, b.prefix.length);
  for (let at = 0; at < length; at++) {
    const difference = (a.prefix[at] ?? 0) - (b.prefix[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** The shortest bound that has `before` on its left and `after` on its right. */
export function boundBetween(before: SyncKey, after: SyncKey): Bound {
  if (before.time !== after.time) return { time: after.time, prefix: NOTHING };
  let length = 0;
  while (length < SYNC_ID_BYTES && before.id[length] === after.id[length]) length++;
  return { time: after.time, prefix: after.id.slice(0, length + 1) };
}
