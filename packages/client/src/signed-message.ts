import {
  ANY_TIME,
  AppError,
  cidOfFile,
  envelopeText,
  fieldsOf,
  isCid,
  isFileCid,
  isItemHash64,
  LIMITS,
  parseContentFile,
  parseMessageHash,
  readContentHead,
  sha256Hex,
  type VerifiedMessage,
  verifyShared,
  verifySubmission,
} from '@skerry/protocol';
import {
  type JudgedMessageView,
  MESSAGES_API,
  type NetworkMessageView,
} from '@skerry/protocol/api/core/messages';
import { call } from './call.ts';
import { askForFile } from './files/raw-file.ts';
import { readBytes } from './reads/read-body.ts';

/** A message as a core node lists it in the network form. */
export type ListedMessage = Pick<
  NetworkMessageView,
  'item_hash' | 'sender' | 'signature' | 'item_type' | 'item_content' | 'content' | 'shared'
>;

/** A message as a core node answers it by itself, in the form of lists; of one that waits, the time is a date. */
export function listedOf(view: JudgedMessageView): ListedMessage {
  const [waiting] = view.messages ?? [];
  if (waiting) return Object.assign({}, waiting, { time: Date.parse(waiting.time) / 1_000 });
  return view.message ?? { ...view, item_type: 'inline', item_content: null };
}

export interface SignedMessageSource {
  /** Where the core node is, without `/api/v0`. */
  readonly coreUrl: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * A message by its hash, with what nodes pass on of it (`shared`), however long that is. A node of an older release refuses to be asked for
 * it, and answers without. Throws what `call` throws.
 */
export async function readWithShared(
  { coreUrl, signal }: SignedMessageSource,
  hash: string,
): Promise<JudgedMessageView> {
  const ask = (query: { bodies?: 'shared' }) =>
    call(coreUrl, MESSAGES_API.getMessage, { params: { hash }, query }, { signal });
  try {
    return await ask({ bodies: 'shared' });
  } catch (error) {
    if (error instanceof AppError && error.code === 'INVALID_PARAMETERS') return ask({});
    throw error;
  }
}

/** Whether these are the bytes that a SHA-256 names, or a CID under which a file is added to IPFS by default. */
const isNamed = (bytes: Uint8Array, hash: string) =>
  isCid(hash) ? cidOfFile(bytes) === hash : sha256Hex(bytes) === hash;

/** The whole of a content that is a file: as it is listed, where that makes the same bytes, or as it is stored. Throws CONTENT_NOT_FOUND. */
async function readContentOf(
  { coreUrl, signal }: SignedMessageSource,
  { content }: ListedMessage,
  hash: string,
): Promise<Uint8Array> {
  const listed = new TextEncoder().encode(JSON.stringify(content) ?? '');
  if (isNamed(listed, hash)) return listed;
  const response = await askForFile(coreUrl, hash, { signal }).catch((error) => {
    if (!(error instanceof AppError) || error.kind !== 'missing') throw error;
    throw new AppError('CONTENT_NOT_FOUND', `the core node does not have the content of ${hash}`, {
      cause: error,
    });
  });
  return readBytes(response, LIMITS.contentFileBytes);
}

/** A CID is that of blocks, of one size by default: of bytes that make another one, nobody can say that they are wrong. */
const unprovable = (cid: string) =>
  new AppError(
    'CONTENT_NOT_FOUND',
    `the content of ${cid} is on IPFS in blocks that are not told here, so it cannot be verified`,
  );

/** Signed in the network form: the hash covers the content, the signature the hash and the sender. */
async function verifyNetworkRow(source: SignedMessageSource, row: ListedMessage): Promise<VerifiedMessage> {
  const { content: _, ...signed } = row;
  const message = verifySubmission(JSON.stringify({ message: signed }), ANY_TIME);
  if (message.content !== null) return message;
  const { itemHash, sender, signedSender, time } = message;
  const { itemType } = parseMessageHash(itemHash);
  if (itemType === 'ipfs' && !isFileCid(itemHash)) throw unprovable(itemHash);
  const bytes = await readContentOf(source, row, itemHash);
  if (itemType === 'ipfs' && !isNamed(bytes, itemHash)) throw unprovable(itemHash);
  const content = parseContentFile(
    bytes,
    { itemType, itemHash, signedSender: signedSender ?? sender, time },
    ANY_TIME,
  );
  return { ...message, content, time: readContentHead(content).time };
}

/** The message itself, with its signed text; undefined where the node answers it in another form, as deployed ones do. */
async function findMessage(
  { coreUrl, signal }: SignedMessageSource,
  hash: string,
): Promise<JudgedMessageView | undefined> {
  try {
    return await call(coreUrl, MESSAGES_API.getMessage, { params: { hash } }, { signal });
  } catch (error) {
    if (error instanceof AppError && error.code === 'UNEXPECTED_ANSWER') return undefined;
    throw error;
  }
}

/** An upload as nodes pass it on. What it is beside its file's hash, no signature covers. */
function uploadTextOf({
  sender,
  signature,
  signed_text,
  channel,
  timestamp,
  content,
}: JudgedMessageView): string {
  const { size, content_type, tags } = fieldsOf(content);
  const of = { address: sender, file_hash: signed_text, size, content_type, tags };
  return JSON.stringify({ upload: { ...of, signature, channel, time: timestamp }, noted_ms: 0 });
}

/** What its sender signed, as nodes pass it on. Throws INVALID_SIGNATURE where the message has no such text. */
async function readSignedText(source: SignedMessageSource, hash: string): Promise<string> {
  const view = await findMessage(source, hash);
  const text = view?.signed_text;
  if (view && text && isItemHash64(text)) return uploadTextOf(view);
  if (view && text?.startsWith('{')) return envelopeText(text, view.signature, view.sender);
  throw new AppError('INVALID_SIGNATURE', `the core node has no text that matches the signature of ${hash}`);
}

function verifyPassedOn(text: string, hash: string): VerifiedMessage {
  const message = verifyShared(text, ANY_TIME);
  if (message.itemHash === hash) return message;
  throw new AppError('HASH_MISMATCH', `the core node gave another message with ${hash}`);
}

/** Signed as an envelope, or as the hash of a file: the message itself has the text. */
const verifyTextRow = async (source: SignedMessageSource, { item_hash: hash }: ListedMessage) =>
  verifyPassedOn(await readSignedText(source, hash), hash);

/** With what nodes pass on, which says since when a message is there as well. Of one whose content is a file it names the file alone. */
async function verifySharedRow(source: SignedMessageSource, row: ListedMessage, shared: string) {
  const { notedMs, ...message } = verifyPassedOn(shared, row.item_hash);
  const whole = message.content === null ? await verifyNetworkRow(source, row) : message;
  return notedMs === undefined ? whole : { ...whole, notedMs };
}

/** Whether the row has what its hash covers: only the network form's hash is that of the content. */
const isNetworkRow = ({ item_type, item_content, item_hash }: ListedMessage) =>
  typeof item_content === 'string' && (item_type ?? 'inline') === 'inline'
    ? sha256Hex(item_content) === item_hash
    : item_type !== 'inline';

/**
 * The message that its sender signed, whatever the core node says of it: hash, sender, time and content are those that
 * the signature covers. In the network form the channel is covered by nothing; of an upload nothing is but the file's hash.
 * Since when it is there (`notedMs`), which decides whether it is late, is only told of rows that were asked for with `bodies=shared`.
 *
 * @throws AppError INVALID_SIGNATURE, HASH_MISMATCH, and others for what cannot be a message; CONTENT_NOT_FOUND where the content
 *   cannot be read here
 */
export async function verifyListed(
  source: SignedMessageSource,
  row: ListedMessage,
): Promise<VerifiedMessage> {
  if (typeof row.shared === 'string') return verifySharedRow(source, row, row.shared);
  return isNetworkRow(row) ? verifyNetworkRow(source, row) : verifyTextRow(source, row);
}
