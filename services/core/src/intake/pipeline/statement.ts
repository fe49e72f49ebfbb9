import {
  forgottenKeyOf,
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

/** A message's key changed, or it is new (`from` is null), or gone (`to` is null): what the indexes of messages follow. */
export interface Move {
  readonly itemHash: string;
  readonly from: SyncKey | null;
  readonly to: SyncKey | null;
  /** Among the messages that are forgotten. Of all that are kept none goes. */
  readonly isOfForgotten?: true;
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

/** The columns that tell what judges the FORGET of a message. */
export type HeadColumns = Pick<
  StoredMessage,
  'item_hash' | 'sender' | 'owner' | 'type' | 'channel' | 'time' | 'content_type' | 'subject'
>;

/** Whether it is among those that are forgotten, as nodes compare them. By a wanted text two nodes differ anyway. */
export const isAmongForgotten = ({ status, erased }: Pick<StoredMessage, 'status' | 'erased'>): boolean =>
  erased === null ? status === 'forgotten' : !isWanted(erased);

export const forgottenKeyOfRow = (row: HeadColumns): SyncKey =>
  forgottenKeyOf({ ...row, itemHash: row.item_hash, contentType: row.content_type });

export const forgottenKeyOfAccepted = ({ message, owner, contentType, subject }: Accepted): SyncKey => {
  const { itemHash, sender, type, channel, time } = message;
  return forgottenKeyOf({ itemHash, sender, owner, type, channel, time, contentType, subject });
};

export const isWanted = (erased: StoredMessage['erased']): boolean => erased === 'wanted';

export const keyOfAccepted = (accepted: Accepted, erased: StoredMessage['erased'] = null) =>
  syncKeyOf(fieldsOfAccepted(accepted), isWanted(erased));
export const keyOfRow = (row: KeyColumns) => syncKeyOf(fieldsOfRow(row), isWanted(row.erased));
export const shortKeyOfAccepted = (accepted: Accepted, erased: StoredMessage['erased'] = null): ShortKey =>
  shortKeyOf(keyOfAccepted(accepted, erased));
