import type { PersonalCheck } from '../chains.ts';
import type { MessageShape } from '../content/envelope-shape.ts';
import { StoreContent } from '../content/store.ts';
import { Tags } from '../content/tags.ts';
import type { VerifiedMessage } from '../envelope.ts';
import { AppError } from '../errors.ts';
import { scanJsonObject } from '../json/scan.ts';
import { LIMITS } from '../limits.ts';
import { HASH64_PATTERN, parseMessageHash } from '../network-form/item-hash.ts';
import { createParser } from '../schema.ts';
import { verifyScannedSubmission } from '../submission.ts';
import { type Static, Type } from '../type.ts';
import { verifyUpload } from '../upload.ts';
import { type SyncFields, uncoveredText } from './key.ts';

/**
 * How nodes pass messages on: one JSON object each, that holds everything its signature and its hash cover.
 *
 *     envelope  {"message": <the signed text>, "signature", "address"}, with "noted_ms" where it was late
 *     network   {"message": {chain, sender, type, ...}, "noted_ms"}
 *     upload    {"upload": {address, file_hash, size, content_type, signature, channel, tags, time}, "noted_ms"}
 */

/** A message with all that JSON may add to it. */
export const SHARED_BYTES_MAX = LIMITS.jsonBodyBytes + 64 * 1024;

const NotedMs = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

const Upload = Type.Object(
  {
    address: Type.String({ minLength: 1, maxLength: LIMITS.addressChars }),
    file_hash: Type.String({ pattern: HASH64_PATTERN }),
    size: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
    content_type: StoreContent.properties.content_type,
    signature: Type.String({ minLength: 1, maxLength: LIMITS.signatureChars }),
    channel: Type.String({ minLength: 1, maxLength: LIMITS.channelChars }),
    tags: Type.Optional(Tags),
    time: Type.Integer({ minimum: 0, maximum: 9_223_372_036 }),
  },
  { additionalProperties: false },
);
const parseUpload = createParser(
  Type.Object({ upload: Upload, noted_ms: NotedMs }, { additionalProperties: false }),
  'body',
  'INVALID_ENVELOPE',
);
const parseNoted = createParser(Type.Object({ noted_ms: NotedMs }), 'body', 'INVALID_ENVELOPE');

function checkClock(time: number, nowSeconds: number): void {
  if (time <= nowSeconds + LIMITS.futureSeconds) return;
  throw new AppError(
    'TIMESTAMP_IN_FUTURE',
    `the upload is ${time - nowSeconds} seconds ahead of the node's clock`,
  );
}

function readUpload(value: unknown, nowSeconds: number, checkPersonal?: PersonalCheck): VerifiedMessage {
  const { upload, noted_ms: notedMs } = parseUpload(value);
  const {
    file_hash: fileHash,
    signature,
    channel,
    time,
    size,
    content_type: contentType,
    tags = [],
  } = upload;
  checkClock(time, nowSeconds);
  return {
    form: 'upload',
    ...verifyUpload(fileHash, upload, checkPersonal),
    type: 'STORE',
    channel,
    time,
    content: {
      item_type: 'storage',
      item_hash: fileHash,
      size,
      ...(contentType === undefined ? {} : { content_type: contentType }),
      ...(tags.length > 0 ? { tags: [...tags] } : {}),
    },
    signature,
    sourceText: fileHash,
    notedMs,
  };
}

/**
 * Reads and verifies a message that a node passes on.
 *
 * @param nowSeconds the node's clock, Unix seconds
 * @param checkPersonal in the place of recovering the signer (SigningContext)
 * @throws AppError what verifySubmission throws
 */
export function verifyShared(
  body: Uint8Array | string,
  nowSeconds: number,
  checkPersonal?: PersonalCheck,
): VerifiedMessage {
  const scanned = scanJsonObject(body);
  if (Object.hasOwn(scanned.value, 'upload')) return readUpload(scanned.value, nowSeconds, checkPersonal);
  const { noted_ms: noted, ...value } = scanned.value;
  const message = verifyScannedSubmission({ ...scanned, value }, nowSeconds, checkPersonal);
  if (message.form === 'envelope' && noted === undefined) return message;
  return { ...message, notedMs: parseNoted(scanned.value).noted_ms };
}

/** How an envelope begins as `sharedText` writes it; the signed text follows. */
const ENVELOPE_START = '{"message":';

/** What verification found out about an envelope, without what its text says itself. */
export interface EnvelopeProof {
  readonly itemHash: string;
  readonly sender: string;
  readonly signature: string;
  /** Of the signed text, which follows `{"message":`. */
  readonly signedChars: number;
  readonly notedMs?: number | undefined;
}

/** For handing a verified envelope to another thread; undefined where it is not written as `sharedText` does. */
export function findEnvelopeProof(text: string, message: VerifiedMessage): EnvelopeProof | undefined {
  const { form, itemHash, sender, signature, sourceText, notedMs } = message;
  if (form !== 'envelope' || sourceText === null) return undefined;
  const end = ENVELOPE_START.length + sourceText.length;
  // A slice is compared at once, where `startsWith` goes character by character.
  if (!text.startsWith(ENVELOPE_START) || text.slice(ENVELOPE_START.length, end) !== sourceText)
    return undefined;
  return { itemHash, sender, signature, signedChars: sourceText.length, notedMs };
}

/** The verified message of a text and its own proof: nothing is checked again. */
export function readProvenEnvelope(text: string, proof: EnvelopeProof): VerifiedMessage {
  const { itemHash, sender, signature, signedChars, notedMs } = proof;
  const sourceText = text.slice(ENVELOPE_START.length, ENVELOPE_START.length + signedChars);
  const {
    chain,
    type,
    channel,
    timestamp: time,
    content,
  } = JSON.parse(sourceText) as Static<typeof MessageShape>;
  const message = { itemHash, chain, sender, type, channel, time, content, signature, sourceText };
  return { form: 'envelope', ...message, ...(notedMs === undefined ? {} : { notedMs }) };
}

function networkPart({
  itemHash,
  chain,
  sender,
  signedSender,
  type,
  channel,
  time,
  sentTime,
  signature,
  sourceText,
}: VerifiedMessage) {
  return {
    chain,
    sender: signedSender ?? sender,
    type,
    ...(channel === null ? {} : { channel }),
    time: sentTime ?? time,
    item_type: sourceText === null ? parseMessageHash(itemHash).itemType : 'inline',
    item_hash: itemHash,
    ...(sourceText === null ? {} : { item_content: sourceText }),
    signature,
  };
}

function uploadPart({ sender, signature, channel, time, content, sourceText }: VerifiedMessage) {
  const { size, content_type, tags } = content as StoreContent;
  return { address: sender, file_hash: sourceText, size, content_type, signature, channel, tags, time };
}

/** A message as it is passed on, or undefined where its text was erased. */
export function sharedText(message: VerifiedMessage): string | undefined {
  const { form, sender, signature, sourceText, notedMs } = message;
  const noted_ms = notedMs ?? 0;
  if (form === 'network')
    // Of a message whose content is a file nothing but the file is erased.
    return JSON.stringify({ message: networkPart(message), noted_ms });
  if (sourceText === null) return undefined;
  if (form === 'upload') return JSON.stringify({ upload: uploadPart(message), noted_ms });
  return envelopeText(sourceText, signature, sender, notedMs);
}

/** An envelope as it is passed on. @param notedMs only of one that was late */
export const envelopeText = (
  signedText: string,
  signature: string,
  sender: string,
  notedMs?: number | null,
): string =>
  `${ENVELOPE_START}${signedText},"signature":${JSON.stringify(signature)},"address":${JSON.stringify(sender)}${notedMs == null ? '' : `,"noted_ms":${notedMs}`}}`;

/** Of a message: what no hash or signature covers, and when a node first said it. */
export type Statement = Omit<SyncFields, 'itemHash'>;

/**
 * Whether another node's statement takes the place of the one that is kept: it says something else, and was made
 * earlier. Equal times are settled by what is said; of an envelope, a node that says nothing had it in time. So every
 * node ends with the same, whatever it heard first.
 */
export function isEarlierStatement(other: Statement, kept: Statement): boolean {
  const [theirs, ours] = [uncoveredText(other), uncoveredText(kept)];
  if (theirs === ours) return false;
  const [theirMs, ourMs] = [other.notedMs ?? 0, kept.notedMs ?? 0];
  return theirMs === ourMs ? theirs < ours : theirMs < ourMs;
}
