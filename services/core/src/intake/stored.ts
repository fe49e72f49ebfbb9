import {
  AppError,
  parseContentFile,
  parseMessageHash,
  readContentHead,
  sharedText,
  type VerifiedMessage,
  verifyShared,
} from '@skerry/protocol';
import type { Selectable } from 'kysely';
import type { ReadContentFile } from '../store/content-reader.ts';
import type { Schema } from '../store/schema.ts';
import { acceptMessage } from './accept.ts';
import { type Accepted, acceptAs, forgotten, isJudged, isRead, rejected } from './accepted.ts';
import { amendedBy } from './kinds/amend.ts';

/** A message as the database has it. */
export type StoredMessage = Selectable<Schema['messages']>;

/** What a row says of the message itself. */
type SaidByRow = Pick<
  StoredMessage,
  | 'form'
  | 'item_hash'
  | 'chain'
  | 'sender'
  | 'signed_sender'
  | 'type'
  | 'channel'
  | 'time'
  | 'content'
  | 'signature'
  | 'source_text'
  | 'sent_time'
  | 'noted_ms'
>;

export function verifiedOf(row: SaidByRow): VerifiedMessage {
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
    ...(row.sent_time === null ? {} : { sentTime: row.sent_time }),
    ...(row.noted_ms === null ? {} : { notedMs: row.noted_ms }),
  };
}

/**
 * The content as it was signed, keys and numbers in their order and spelling: the database's own form of it serves queries alone. An
 * upload's content was written by the node that took it.
 */
export function contentOf({
  form,
  source_text: text,
  content,
}: Pick<StoredMessage, 'form' | 'source_text' | 'content'>): StoredMessage['content'] {
  if (text === null || form === 'upload') return content;
  const signed = JSON.parse(text);
  return form === 'envelope' ? (signed.content ?? null) : signed;
}

/** A message whose content is a file, with that content. */
export function withContentOf(
  message: VerifiedMessage,
  bytes: Uint8Array,
  nowSeconds: number,
): VerifiedMessage {
  const { itemHash, sender, signedSender, time: before, sentTime: said = before } = message;
  const { itemType } = parseMessageHash(itemHash);
  const content = parseContentFile(
    bytes,
    { itemType, itemHash, signedSender: signedSender ?? sender, time: said },
    nowSeconds,
  );
  const { time } = readContentHead(content);
  return { ...message, content, time, sentTime: said === time ? undefined : said };
}

/** The place where contents are kept has a fault that may pass: nothing can be said of the message. */
export class ContentUnreadable extends Error {
  override readonly name = 'ContentUnreadable';
}

async function tryRead(itemHash: string, read: ReadContentFile): Promise<Uint8Array | undefined> {
  try {
    return await read(itemHash);
  } catch (error) {
    throw new ContentUnreadable(`the content ${itemHash} cannot be read at the moment`, { cause: error });
  }
}

type KeptHead = Pick<StoredMessage, 'owner' | 'subject' | 'content_type' | 'tags'>;

/** What is known of a message whose content is not kept. */
const keptHead = ({ owner, subject, content_type: contentType, tags }: KeptHead) => ({
  owner,
  subject,
  contentType,
  tags,
});

/** Whether what a message said was erased (erase.ts). By now it may be rejected, since a revocation came. */
export const isErased = (
  { status, erased }: Pick<StoredMessage, 'status' | 'erased'>,
  lacksContent: boolean,
): boolean => lacksContent && (status === 'forgotten' || erased !== null);

/**
 * What it said is gone from the disk (erase.ts), so it stays forgotten where its sender was permitted to say it. Of the network form that
 * may have been a file. Of an amend, whether its text is wanted hangs on its post.
 */
export function acceptErased(row: KeptHead, message: VerifiedMessage, sentence: string): Accepted {
  const head = keptHead(row);
  const post = amendedBy(message, head);
  return acceptAs(message, {
    ...head,
    isSkeleton: true,
    needs: {
      ...(message.form === 'network' ? { files: [message.itemHash] } : {}),
      ...(post === undefined ? {} : { messages: [post] }),
    },
    decide: () => forgotten(sentence),
  });
}

/** Whether two tell the same of what a hash or a signature covers: what it was made from may name another sender beside the one who signed. */
export const isSameSigned = (a: VerifiedMessage, b: VerifiedMessage): boolean =>
  (['form', 'itemHash', 'chain', 'sender', 'type'] as const).every((name) => a[name] === b[name]);

/** Whether its sender signed a message of the network form, of which the content need not be here. */
function isSigned(message: VerifiedMessage): boolean {
  if (message.form !== 'network') return false;
  try {
    return isSameSigned(message, verifyShared(sharedText(message)!, Number.POSITIVE_INFINITY));
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return false;
  }
}

/** What it says was read, and is not kept: without its file nothing else can be said of it. */
const acceptJudged = (
  row: KeptHead & Pick<StoredMessage, 'status' | 'reason'>,
  message: VerifiedMessage,
): Accepted =>
  acceptAs(message, {
    ...keptHead(row),
    decide: () => ({ status: row.status, reason: row.reason }),
  });

/** A message whose content, which is a file, nobody can take. */
export const acceptUnfit = (message: VerifiedMessage, { code, message: sentence }: AppError): Accepted =>
  acceptAs(message, { decide: () => rejected(code, sentence) });

/** Reads what a message says. @param bytes of its content, where that is a file that is here */
function acceptContent(
  message: VerifiedMessage,
  bytes: Uint8Array | undefined,
  nowSeconds: number,
): Accepted {
  try {
    return acceptMessage(bytes ? withContentOf(message, bytes, nowSeconds) : message);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return acceptUnfit(message, error);
  }
}

/** What was erased and is here as a file, if it is. The word of a peer may be of a message that nobody signed. */
async function acceptBack(
  message: VerifiedMessage,
  read: ReadContentFile,
  nowSeconds: number,
): Promise<Accepted | undefined> {
  const bytes = message.form === 'network' ? await tryRead(message.itemHash, read) : undefined;
  return bytes && isSigned(message) ? acceptContent(message, bytes, nowSeconds) : undefined;
}

/**
 * Reads again what was accepted once. What today's rules would not take any more is rejected with their reason. Throws
 * ContentUnreadable where a content could not be read now.
 * @param nowSeconds which a content that comes now may not be ahead of, as if it had been here with its message; left out where what
 *   was in force is read
 */
export async function acceptStored(
  row: StoredMessage,
  read: ReadContentFile,
  nowSeconds = Number.POSITIVE_INFINITY,
): Promise<Accepted> {
  const message = verifiedOf(row.content === null ? { ...row, content: contentOf(row) } : row);
  if (isErased(row, row.content === null)) {
    const back = await acceptBack(message, read, nowSeconds);
    if (back) return back;
    const sentence = row.status === 'forgotten' ? row.reason?.message : undefined;
    return acceptErased(row, message, sentence ?? 'the message was forgotten');
  }
  const bytes = message.content === null ? await tryRead(message.itemHash, read) : undefined;
  if (!bytes && !isRead(message) && isJudged(row)) return acceptJudged(row, message);
  return acceptContent(message, bytes, nowSeconds);
}
