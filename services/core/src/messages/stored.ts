import {
  AppError,
  parseContentFile,
  parseMessageHash,
  readContentHead,
  type VerifiedMessage,
} from '@skerry/protocol';
import type { Selectable } from 'kysely';
import type { Schema } from '../db/schema.ts';
import { type Accepted, accept, forgotten, rejected } from './accepted.ts';
import { acceptMessage } from './kinds.ts';

/** A message as the database has it. */
export type StoredMessage = Selectable<Schema['messages']>;

/** The bytes of a message's content file; undefined while it is not at hand. */
export type ReadContentFile = (hash: string) => Promise<Uint8Array | undefined>;

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
    ...(row.noted_ms === null ? {} : { notedMs: row.noted_ms }),
  };
}

/** A message whose content is a file, with that content where the file is at hand. */
export async function withContent(
  message: VerifiedMessage,
  read: ReadContentFile,
  nowSeconds: number,
): Promise<VerifiedMessage> {
  if (message.content !== null) return message;
  const bytes = await read(message.itemHash);
  if (!bytes) return message;
  const { itemHash, sender, signedSender, time } = message;
  const { itemType } = parseMessageHash(itemHash);
  const content = parseContentFile(
    bytes,
    { itemType, itemHash, signedSender: signedSender ?? sender, time },
    nowSeconds,
  );
  return { ...message, content, time: readContentHead(content).time };
}

/** What it said is gone from the disk (erase.ts), so it stays forgotten. */
const acceptErased = (row: StoredMessage, message: VerifiedMessage): Accepted =>
  accept(message, {
    owner: row.owner,
    subject: row.subject,
    contentType: row.content_type,
    tags: row.tags,
    decide: () => forgotten(row.reason?.message ?? 'the message was forgotten'),
  });

/** Reads again what was accepted once. What today's rules would not take any more is rejected with their reason. */
export async function acceptStored(row: StoredMessage, read: ReadContentFile): Promise<Accepted> {
  const message = verifiedOf(row);
  if (row.status === 'forgotten' && row.content === null) return acceptErased(row, message);
  try {
    // Its time was judged when it came.
    return acceptMessage(await withContent(message, read, message.time));
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const { code, message: sentence } = error;
    return accept(message, { decide: () => rejected(code, sentence) });
  }
}
