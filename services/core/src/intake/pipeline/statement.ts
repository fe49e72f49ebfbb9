import {
  type ShortKey,
  type SyncFields,
  type SyncKey,
  shortKeyOf,
  syncKeyOf,
  uncoveredText,
} from '@skerry/protocol';
import type { Accepted } from '../accepted.ts';
import type { StoredMessage } from '../stored.ts';
import type { SetChange } from './set-place.ts';

/** A message's key changed, or it is new (`from` is null): what the index of messages follows. */
export interface Move {
  readonly itemHash: string;
  readonly from: SyncKey | null;
  readonly to: SyncKey;
}

/** What is told once a batch is durable. */
export interface Committed {
  readonly moves: readonly Move[];
  /** The row that tells other processes of them. */
  readonly row: SetChange;
  /** Messages that are new, and that other nodes hear of from this one. */
  readonly toPassOn: readonly Accepted[];
}

export const fieldsOfAccepted = ({ message, tags }: Accepted): SyncFields => ({
  form: message.form,
  itemHash: message.itemHash,
  sender: message.sender,
  channel: message.channel,
  time: message.time,
  sentTime: message.sentTime ?? null,
  tags,
  notedMs: message.notedMs ?? null,
});

/** Whether two statements differ in nothing but since when the message is there. */
export const isSameButDate = (a: SyncFields, b: SyncFields): boolean =>
  uncoveredText({ ...a, notedMs: null }) === uncoveredText({ ...b, notedMs: null });

/** The columns that a key is made of. */
export type KeyColumns = Pick<
  StoredMessage,
  'item_hash' | 'form' | 'sender' | 'channel' | 'time' | 'sent_time' | 'tags' | 'noted_ms' | 'erased'
>;

export const fieldsOfRow = (row: KeyColumns): SyncFields => ({
  form: row.form,
  itemHash: row.item_hash,
  sender: row.sender,
  channel: row.channel,
  time: row.time,
  sentTime: row.sent_time,
  tags: row.tags,
  notedMs: row.noted_ms,
});

export const isWanted = (erased: StoredMessage['erased']): boolean => erased === 'wanted';

export const keyOfAccepted = (accepted: Accepted, erased: StoredMessage['erased'] = null) =>
  syncKeyOf(fieldsOfAccepted(accepted), isWanted(erased));
export const keyOfRow = (row: KeyColumns) => syncKeyOf(fieldsOfRow(row), isWanted(row.erased));
export const shortKeyOfAccepted = (accepted: Accepted, erased: StoredMessage['erased'] = null): ShortKey =>
  shortKeyOf(keyOfAccepted(accepted, erased));
