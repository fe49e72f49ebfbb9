import { familyOf, type PersonalCheck } from '../chains.ts';
import { normaliseAddress, OnBehalfOf, PRINTABLE } from '../content/on-behalf.ts';
import { AppError } from '../errors.ts';
import { sha256Hex } from '../hash.ts';
import { scanJsonObject } from '../json/scan.ts';
import { LIMITS } from '../limits.ts';
import { createParser } from '../schema.ts';
import { Type } from '../type.ts';
import { type ItemType, parseMessageHash } from './item-hash.ts';

/**
 * The form of messages that deployed nodes and their SDKs speak (docs/wire-forms.md):
 * `{chain, sender, type, channel?, time, item_type?, item_hash, item_content?, signature}`. The signature covers chain,
 * sender, type and item hash; the item hash covers the content. Envelope time and channel are covered by nothing.
 */

const MAX_TIME = 9_223_372_036;

const Header = Type.Object({
  chain: Type.String({ minLength: 1, maxLength: 16 }),
  sender: Type.String({ minLength: 1, maxLength: LIMITS.addressChars, pattern: PRINTABLE }),
  // One line, since types are signed as a line of their own.
  type: Type.String({ maxLength: LIMITS.messageTypeChars, pattern: '^[A-Z][A-Z0-9_-]*$' }),
  channel: Type.Optional(Type.String({ maxLength: LIMITS.channelChars, pattern: PRINTABLE })),
  time: Type.Number({ minimum: 0, maximum: MAX_TIME, description: 'Unix seconds, with fraction' }),
  item_type: Type.Optional(
    Type.Union([Type.Literal('inline'), Type.Literal('storage'), Type.Literal('ipfs')]),
  ),
  item_hash: Type.String({ maxLength: 128 }),
  item_content: Type.Optional(Type.String()),
  signature: Type.String({ maxLength: LIMITS.signatureChars }),
});
const HEADER_FIELDS = Object.keys(Header.properties);

const parseHeader = createParser(Header, 'message', 'INVALID_ENVELOPE');

/** What every content of this form begins with. */
const ContentHead = Type.Object({
  address: OnBehalfOf,
  time: Type.Number({ minimum: 0, maximum: MAX_TIME, description: 'Unix seconds, with fraction' }),
});
const parseContentHead = createParser(ContentHead, 'content');

export type NetworkContent = Readonly<Record<string, unknown>>;

/** A message of the network form whose shape and hash were checked, and whose signature was not. */
export interface NetworkMessage {
  readonly chain: string;
  /** As sent: the signature covers this spelling. */
  readonly signedSender: string;
  readonly type: string;
  readonly channel: string | null;
  /** The envelope's time, Unix seconds with fraction. Not signed; `readContentHead` gives the time that is. */
  readonly time: number;
  readonly itemType: ItemType;
  readonly itemHash: string;
  /** The exact text that `itemHash` covers, where the content is inline. */
  readonly itemContent: string | null;
  /** The parsed content with its `address` and `time`; null until the content file is at hand. */
  readonly content: NetworkContent | null;
  readonly signature: string;
}

export interface VerifiedNetworkMessage extends NetworkMessage {
  /** In the one spelling of its chain (lower case for EVM). */
  readonly sender: string;
  /** The exact text that the signature covers. */
  readonly signedText: string;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Tells the two forms apart by the value of a body's `message`: only this one carries its hash. */
export function isNetworkForm(message: unknown): boolean {
  return isObject(message) && Object.hasOwn(message, 'item_hash');
}

/** The known fields; null counts as left out, as SDKs write it, and unknown fields are ignored. */
function pickHeader(value: Record<string, unknown>): Record<string, unknown> {
  const known = HEADER_FIELDS.filter((name) => Object.hasOwn(value, name) && value[name] !== null);
  return Object.fromEntries(known.map((name) => [name, value[name]]));
}

function checkTextLength(text: string): void {
  // A code point is one or two units, so most texts are decided without counting.
  if (text.length <= LIMITS.inlineContentChars) return;
  let count = 0;
  for (const _ of text) count++;
  if (count > LIMITS.inlineContentChars) {
    throw new AppError(
      'INVALID_CONTENT',
      `item_content has ${count} characters; at most ${LIMITS.inlineContentChars} may be inline`,
    );
  }
}

function scanContent(text: string, what: string): Record<string, unknown> {
  if (text.includes('\\u0000')) throw new AppError('INVALID_CONTENT', `${what} has the escape \\u0000`);
  try {
    return scanJsonObject(text).value;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new AppError('INVALID_CONTENT', `${what}: ${error.message}`, { details: error.details });
  }
}

/** Content, hash and length of an inline message. */
function readInline(text: string, itemHash: string): NetworkContent {
  checkTextLength(text);
  if (!text.isWellFormed()) {
    throw new AppError('INVALID_CONTENT', 'item_content has half of a surrogate pair');
  }
  if (sha256Hex(text) !== itemHash) {
    throw new AppError('HASH_MISMATCH', 'item_hash is not the SHA-256 of item_content in UTF-8');
  }
  const content = scanContent(text, 'item_content');
  parseContentHead(content);
  return content;
}

/**
 * Reads the `message` of a body: its fields, its hash, and its content where that is inline. Unknown fields are
 * ignored, and so is `content`, which the hash does not cover.
 *
 * @throws AppError INVALID_ENVELOPE, SIGNATURE_REQUIRED, UNKNOWN_CHAIN, INVALID_HASH, HASH_MISMATCH, INVALID_CONTENT
 */
export function parseNetworkMessage(value: unknown): NetworkMessage {
  if (!isObject(value)) throw new AppError('INVALID_ENVELOPE', 'message must be an object');
  const picked = pickHeader(value);
  if (picked.signature === undefined || picked.signature === '') {
    throw new AppError('SIGNATURE_REQUIRED', 'the message carries no signature');
  }
  const header = parseHeader(picked);
  familyOf(header.chain);
  const named = parseMessageHash(header.item_hash);
  const itemContent = header.item_content ?? null;
  const itemType = header.item_type ?? (itemContent === null ? named.itemType : 'inline');
  const isInline = itemType === 'inline';
  if (isInline !== (itemContent !== null)) {
    throw new AppError(
      'INVALID_ENVELOPE',
      isInline
        ? 'an inline message needs item_content'
        : `a message of item_type ${itemType} has no item_content`,
    );
  }
  if (named.itemType !== (isInline ? 'storage' : itemType)) {
    throw new AppError(
      'INVALID_HASH',
      `item_hash does not have the form that item_type ${itemType} asks for`,
    );
  }
  return {
    chain: header.chain,
    signedSender: header.sender,
    type: header.type,
    channel: header.channel ?? null,
    time: header.time,
    itemType,
    itemHash: named.hash,
    itemContent,
    content: itemContent === null ? null : readInline(itemContent, named.hash),
    signature: header.signature,
  };
}

function checkClock(time: number, nowSeconds: number, what: string): void {
  if (time <= nowSeconds + LIMITS.futureSeconds) return;
  throw new AppError(
    'TIMESTAMP_IN_FUTURE',
    `${what} is ${Math.ceil(time - nowSeconds)} seconds ahead of the node's clock`,
    { details: { node_time: nowSeconds } },
  );
}

/** Clients write milliseconds by cutting microseconds off, and a float of seconds is not exact to that. */
const millisecondsOf = (timeSeconds: number) => Math.floor(Math.round(timeSeconds * 1e6) / 1e3);

/**
 * Verifies the signature and judges both times by the node's clock (docs/decisions.md 4).
 *
 * @param nowSeconds the node's clock, Unix seconds
 * @throws AppError UNKNOWN_CHAIN, INVALID_ADDRESS, TIMESTAMP_IN_FUTURE, INVALID_SIGNATURE
 */
export function verifyNetworkMessage(
  message: NetworkMessage,
  nowSeconds: number,
  checkPersonal?: PersonalCheck,
): VerifiedNetworkMessage {
  checkClock(message.time, nowSeconds, 'time');
  if (message.content) checkClock(readContentHead(message.content).time, nowSeconds, 'content.time');
  const { chain, signedSender, type, itemHash, signature } = message;
  const family = familyOf(chain);
  const sender = family.parseAddress(signedSender);
  const signedText = `${chain}\n${signedSender}\n${type}\n${itemHash}`;
  const context = { timestampMs: millisecondsOf(message.time), checkPersonal };
  if (!family.verify(signedText, signature, sender, context)) {
    throw new AppError('INVALID_SIGNATURE', `the signature over the message was not made by ${sender}`);
  }
  return { ...message, sender, signedText };
}

/**
 * Content of a message whose content is a file. `address` and `time` are the sender and the message's time where the
 * file leaves them out. A file named by CID must have been checked against it by whoever fetched it.
 *
 * @param bytes the whole file
 * @param nowSeconds the node's clock, Unix seconds
 * @throws AppError INVALID_CONTENT, HASH_MISMATCH, TIMESTAMP_IN_FUTURE
 */
export function parseContentFile(
  bytes: Uint8Array,
  message: Pick<NetworkMessage, 'itemType' | 'itemHash' | 'signedSender' | 'time'>,
  nowSeconds: number,
): NetworkContent {
  if (bytes.length > LIMITS.contentFileBytes) {
    throw new AppError(
      'INVALID_CONTENT',
      `the content file has ${bytes.length} bytes; at most ${LIMITS.contentFileBytes} are read`,
    );
  }
  if (message.itemType === 'inline')
    throw new AppError('INVALID_CONTENT', 'an inline message has no content file');
  if (message.itemType === 'storage' && sha256Hex(bytes) !== message.itemHash) {
    throw new AppError('HASH_MISMATCH', 'item_hash is not the SHA-256 of the content file');
  }
  const content = {
    address: message.signedSender,
    time: message.time,
    ...scanContent(decode(bytes), 'the content file'),
  };
  checkClock(parseContentHead(content).time, nowSeconds, 'content.time');
  return content;
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function decode(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch (cause) {
    throw new AppError('INVALID_CONTENT', 'the content file is not UTF-8', { cause });
  }
}

/**
 * Whose message it is and when it was made, as its content says. The item hash covers both, so every node reads the
 * same; unlike the envelope's time, which whoever passes a message on could change.
 *
 * @returns address in the one spelling it is kept in; time in Unix seconds, with fraction
 */
export function readContentHead(content: NetworkContent): { address: string; time: number } {
  const { address, time } = parseContentHead(content);
  return { address: normaliseAddress(address), time };
}
