import type { ItemType, MessageView } from '@skerry/protocol';
import type { NetworkMessageView } from '@skerry/protocol/api/core/messages';
import { contentOf, type StoredMessage } from '../../intake/stored.ts';
import type { Confirmation, Confirmations } from './confirmations.ts';

/** The last moment that a date can be. */
const DATE_MS_MAX = 8.64e15;
/** @param seconds since 1970 */
export const isoOf = (seconds: number) => new Date(Math.min(seconds * 1000, DATE_MS_MAX)).toISOString();

const NONE: Confirmations = new Map();
const listOf = (row: StoredMessage, confirmations: Confirmations): Confirmation[] => [
  ...(confirmations.get(row.item_hash) ?? []),
];

function signedTextOf(row: StoredMessage): string | null {
  if (row.form !== 'network') return row.source_text;
  return `${row.chain}\n${row.signed_sender ?? row.sender}\n${row.type}\n${row.item_hash}`;
}

/** A message as the specification has it. Of a forgotten one only the skeleton is shown. */
export function viewOf(row: StoredMessage, confirmations: Confirmations = NONE): MessageView {
  const isForgotten = row.status === 'forgotten';
  return {
    item_hash: row.item_hash,
    chain: row.chain,
    sender: row.sender,
    type: row.type,
    channel: row.channel,
    timestamp: Math.floor(row.time),
    content: isForgotten ? null : contentOf(row),
    signature: row.signature,
    signed_text: isForgotten ? null : signedTextOf(row),
    confirmations: listOf(row, confirmations),
  };
}

function itemTypeOf(row: StoredMessage): ItemType {
  if (row.form !== 'network' || row.source_text !== null) return 'inline';
  return /^[0-9a-f]{64}$/.test(row.item_hash) ? 'storage' : 'ipfs';
}

/**
 * Contents of this form begin with address and time. Of a message that was not signed in it, they are what the message
 * says in other places; its signature covers its own form, not this one.
 */
function networkContentOf(row: StoredMessage): unknown {
  const content = row.status === 'forgotten' ? null : contentOf(row);
  return content === null || row.form === 'network'
    ? content
    : { address: row.owner, time: row.time, ...content };
}

/** A message in the form of deployed nodes, all of it; their clients refuse unknown fields. */
export function networkViewOf(
  row: StoredMessage,
  confirmations: Confirmations = NONE,
): Required<Omit<NetworkMessageView, 'shared'>> {
  const content = networkContentOf(row);
  const itemType = itemTypeOf(row);
  // What is not shown is as large as what was signed, until that is erased.
  const isAsSigned = row.form === 'network' || content === null;
  const text = isAsSigned ? row.source_text : JSON.stringify(content);
  const said = text ?? (content === null ? null : JSON.stringify(content));
  const confirmed = listOf(row, confirmations);
  return {
    item_hash: row.item_hash,
    type: row.type,
    chain: row.chain,
    sender: row.signed_sender ?? row.sender,
    signature: row.signature,
    item_type: itemType,
    item_content: itemType === 'inline' && content !== null ? text : null,
    content,
    time: row.sent_time ?? row.time,
    channel: row.channel,
    size: said === null ? null : Buffer.byteLength(said),
    confirmations: confirmed,
    confirmed: confirmed.length > 0,
  };
}
