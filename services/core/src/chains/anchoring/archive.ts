import { AppError, isCid, isItemHash64 } from '@skerry/protocol';
import type { StoredMessage } from '../../intake/stored.ts';
import { isCidText } from '../../store/ipfs/cid.ts';
import { ARCHIVE_LIMITS } from './limits.ts';

/**
 * Archives of messages, and events that name them, in the form of deployed networks:
 *
 *     event    {"protocol": "aleph-offchain", "version": 1, "content": <CID of an archive>}
 *              {"protocol": "aleph", "version": 1, "content": {"messages": [...]}}
 *     archive  {"protocol": "aleph", "version": 1, "content": {"messages": [...]}}
 *
 * A message of the network form is written as deployed nodes write it. Of the other forms an archive holds exactly what
 * was signed: `{signed_text, signature, address}`, and `{upload: {...}}` for files by their hash.
 */
const OFFCHAIN = 'aleph-offchain';
const INLINE = 'aleph';
const VERSION = 1;

/** Something of an archive that is verified by itself. */
export type ArchivedMessage =
  /**
   * The body of a submission. @property itemHash as the archive says; undefined where that names nothing, and of an envelope, whose
   * content is in it
   */
  | { readonly kind: 'message'; readonly body: Buffer; readonly itemHash: string | undefined }
  /** A file by its uploader: the message of it is made by whoever has the file. */
  | {
      readonly kind: 'upload';
      readonly fileHash: string;
      readonly address: string;
      readonly signature: string;
    };

export type SyncContent =
  | { readonly cid: string; readonly messages: undefined }
  | { readonly cid: undefined; readonly messages: readonly ArchivedMessage[] };

const invalid = (what: string) => new AppError('ARCHIVE_INVALID', what);

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(value: unknown, what: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalid(`${what} is no object`);
  return value as Fields;
}

/** Deeper than any message: whoever walks it later could run out of stack. Looks at the text, before it is parsed. */
function checkDepth(text: string): void {
  let depth = 0;
  let inText = false;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (inText) {
      if (char === 0x5c) at++;
      else if (char === 0x22) inText = false;
    } else if (char === 0x22) inText = true;
    else if (char === 0x7b || char === 0x5b) {
      if (++depth > ARCHIVE_LIMITS.depth) throw invalid('the archive is nested too deep');
    } else if (char === 0x7d || char === 0x5d) depth--;
  }
}

function parseText(text: string, what: string): Fields {
  checkDepth(text);
  try {
    return fieldsOf(JSON.parse(text), what);
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    throw new AppError('ARCHIVE_INVALID', `${what} is not JSON`, { cause });
  }
}

function parseMessage(value: unknown): ArchivedMessage {
  const fields = fieldsOf(value, 'a message of the archive');
  const { signed_text: signedText, signature, address, upload } = fields;
  if (upload !== undefined) {
    const {
      file_hash: fileHash,
      address: by,
      signature: signed,
    } = fieldsOf(upload, 'an upload of the archive');
    if (typeof fileHash !== 'string' || typeof by !== 'string' || typeof signed !== 'string')
      throw invalid('an upload of the archive lacks its hash, address or signature');
    return { kind: 'upload', fileHash, address: by, signature: signed };
  }
  if (typeof signedText !== 'string') {
    const { item_hash: said } = fields;
    const itemHash = typeof said === 'string' && (isItemHash64(said) || isCid(said)) ? said : undefined;
    return { kind: 'message', body: Buffer.from(JSON.stringify({ message: fields })), itemHash };
  }
  const rest = `"signature":${JSON.stringify(signature)},"address":${JSON.stringify(address)}`;
  return { kind: 'message', body: Buffer.from(`{"message":${signedText},${rest}}`), itemHash: undefined };
}

function parseMessages(content: unknown): ArchivedMessage[] {
  const { messages } = fieldsOf(content, 'the content of the archive');
  if (!Array.isArray(messages)) throw invalid('the archive has no list of messages');
  if (messages.length > ARCHIVE_LIMITS.messages)
    throw invalid(`the archive has ${messages.length} messages; the limit is ${ARCHIVE_LIMITS.messages}`);
  return messages.map(parseMessage);
}

const checkVersion = ({ version }: Fields) => {
  if (version !== VERSION) throw invalid(`version ${JSON.stringify(version)?.slice(0, 20)} is not supported`);
};

/** What an event says. Throws ARCHIVE_INVALID. */
export function parseSyncContent(text: string): SyncContent {
  if (text.length > ARCHIVE_LIMITS.readBytes) throw invalid('the event is too large');
  const fields = parseText(text, 'the event');
  checkVersion(fields);
  const { protocol, content } = fields;
  if (protocol === OFFCHAIN) {
    if (typeof content !== 'string' || !isCidText(content)) throw invalid('the event names no CID');
    return { cid: content, messages: undefined };
  }
  if (protocol !== INLINE) throw invalid('the protocol of the event is not supported');
  return { cid: undefined, messages: parseMessages(content) };
}

/** Throws ARCHIVE_INVALID, ARCHIVE_NESTED. */
export function parseArchive(bytes: Uint8Array): ArchivedMessage[] {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new AppError('ARCHIVE_INVALID', 'the archive is not UTF-8', { cause });
  }
  const fields = parseText(text, 'the archive');
  checkVersion(fields);
  if (fields.protocol === OFFCHAIN) throw new AppError('ARCHIVE_NESTED', 'the archive names another archive');
  if (fields.protocol !== INLINE) throw invalid('the protocol of the archive is not supported');
  return parseMessages(fields.content);
}

export const syncContentOf = (cid: string): string =>
  JSON.stringify({ protocol: OFFCHAIN, version: VERSION, content: cid });

/** What of a message an archive holds: the content only of an upload, whose message is made of it. */
export type ArchivedRow = Pick<
  StoredMessage,
  | 'form'
  | 'item_hash'
  | 'chain'
  | 'sender'
  | 'signed_sender'
  | 'type'
  | 'channel'
  | 'time'
  | 'sent_time'
  | 'tags'
  | 'content'
  | 'source_text'
  | 'signature'
>;

function uploadOf(row: ArchivedRow): object {
  const { size, content_type } = row.content as { size?: unknown; content_type?: unknown };
  const tags = row.tags.length > 0 ? { tags: row.tags } : {};
  return {
    address: row.signed_sender ?? row.sender,
    file_hash: row.source_text,
    size,
    content_type,
    signature: row.signature,
    channel: row.channel,
    ...tags,
    time: row.time,
  };
}

/** A message as an archive holds it, as JSON text. */
export function archivedTextOf(row: ArchivedRow): string {
  const sender = row.signed_sender ?? row.sender;
  const { signature, source_text: text } = row;
  if (row.form === 'envelope') return JSON.stringify({ signed_text: text, signature, address: sender });
  if (row.form === 'upload') return JSON.stringify({ upload: uploadOf(row) });
  const itemType = text !== null ? 'inline' : isItemHash64(row.item_hash) ? 'storage' : 'ipfs';
  return JSON.stringify({
    sender,
    chain: row.chain,
    signature,
    type: row.type,
    ...(text === null ? {} : { item_content: text }),
    item_type: itemType,
    item_hash: row.item_hash,
    time: row.sent_time ?? row.time,
    channel: row.channel,
  });
}

/** @param messages as `archivedTextOf` gives them */
export const archiveOf = (messages: readonly string[]): Buffer =>
  Buffer.from(`{"protocol":"${INLINE}","version":${VERSION},"content":{"messages":[${messages.join(',')}]}}`);
