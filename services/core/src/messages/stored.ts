import type { VerifiedMessage } from '@skerry/protocol';
import type { Selectable } from 'kysely';
import type { Schema } from '../db/schema.ts';
import type { Accepted } from './accepted.ts';
import { acceptMessage } from './kinds.ts';

/** A message as the database has it. */
export type StoredMessage = Selectable<Schema['messages']>;

export function verifiedOf(row: StoredMessage): VerifiedMessage {
  return {
    form: row.form,
    itemHash: row.item_hash,
    chain: row.chain,
    sender: row.sender,
    ...(row.signed_sender === null ? {} : { signedSender: row.signed_sender }),
    type: row.type,
    channel: row.channel,
    time: row.time,
    content: row.content,
    signature: row.signature,
    sourceText: row.source_text,
  };
}

/** Reads again what was accepted once. Throws AppError where today's rules would not take it any more. */
export const acceptStored = (row: StoredMessage): Accepted => acceptMessage(verifiedOf(row));
