import {
  AppError,
  createParser,
  familyOf,
  isItemHash64,
  LIMITS,
  parseMessageHash,
  scanJsonObject,
  sharedText,
  type VerifiedMessage,
} from '@skerry/protocol';
import { type Static, type TSchema, Type } from '@skerry/protocol/type';
import type { Accepted } from './accepted.ts';
import { acceptErased, isSameSigned, type StoredMessage, verifiedOf } from './stored.ts';

/**
 * A forgotten message whose text was erased (erase.ts), as nodes pass it on: what its FORGET needs to be judged,
 * and nothing that it said. Of the network form and of uploads the signature covers who signed what, without the text. All else is the
 * peer's word, of an envelope all of it; a message that can be verified takes its place.
 */

const OrNull = <T extends TSchema>(one: T) => Type.Union([one, Type.Null()]);
const Text = (maxLength: number) => Type.String({ maxLength });

const Skeleton = Type.Object(
  {
    form: Type.Union([Type.Literal('envelope'), Type.Literal('network'), Type.Literal('upload')]),
    item_hash: Text(128),
    chain: Text(16),
    sender: Text(LIMITS.addressChars),
    signed_sender: OrNull(Text(LIMITS.addressChars)),
    owner: Text(LIMITS.addressChars),
    type: Text(LIMITS.messageTypeChars),
    channel: OrNull(Text(LIMITS.channelChars)),
    time: Type.Number({ minimum: 0, maximum: 9_223_372_036 }),
    sent_time: Type.Optional(Type.Number({ minimum: 0, maximum: 9_223_372_036 })),
    content_type: OrNull(Text(LIMITS.postTypeChars)),
    subject: OrNull(Text(1024)),
    tags: Type.Array(Text(LIMITS.tagChars), { maxItems: LIMITS.tags }),
    signature: Text(LIMITS.signatureChars),
    noted_ms: OrNull(Type.Integer({ minimum: 0 })),
  },
  { additionalProperties: false },
);
type StaticSkeleton = Static<typeof Skeleton>;
const parseErased = createParser(
  Type.Object({ forgotten: Skeleton }, { additionalProperties: false }),
  'body',
  'INVALID_ENVELOPE',
);
const NAMES = Object.keys(Skeleton.properties) as (keyof typeof Skeleton.properties)[];
const BEGINNING = Buffer.from('{"forgotten":');

export const erasedText = (row: StoredMessage) =>
  JSON.stringify({
    forgotten: Object.fromEntries(
      NAMES.flatMap((name) => (name === 'sent_time' && row[name] === null ? [] : [[name, row[name]]])),
    ),
  });

/** Where a signed message begins otherwise: nearly all do, and are told apart without a view into each. */
const TOLD_AT = 2;

export const isErasedFrame = (frame: Buffer) =>
  frame[TOLD_AT] === BEGINNING[TOLD_AT] && frame.subarray(0, BEGINNING.length).equals(BEGINNING);

/** What a hash and an address look like, where no proof says so. Throws INVALID_ENVELOPE, INVALID_ADDRESS, UNKNOWN_CHAIN. */
function checkEnvelope({ item_hash: itemHash, chain, sender, time }: StaticSkeleton): void {
  if (!isItemHash64(itemHash) || !Number.isInteger(time))
    throw new AppError('INVALID_ENVELOPE', 'this is no forgotten envelope: its hash or its time is none');
  if (familyOf(chain).parseAddress(sender) !== sender)
    throw new AppError('INVALID_ADDRESS', `${sender} is written otherwise on ${chain}`);
}

/**
 * Reads what is left of a message; of what can be proven, `erasedProof` is still to be checked.
 * @param nowSeconds the node's clock, Unix seconds
 * @throws AppError INVALID_JSON, INVALID_ENVELOPE, INVALID_HASH, INVALID_ADDRESS, UNKNOWN_CHAIN, TIMESTAMP_IN_FUTURE
 */
export function acceptErasedFrame(frame: Buffer, nowSeconds: number): Accepted {
  const { forgotten: row } = parseErased(scanJsonObject(frame).value);
  if (row.form === 'envelope') checkEnvelope(row);
  else parseMessageHash(row.item_hash);
  if (row.time > nowSeconds + LIMITS.futureSeconds)
    throw new AppError('TIMESTAMP_IN_FUTURE', "a forgotten message is ahead of the node's clock");
  const message = verifiedOf({
    ...row,
    content: null,
    source_text: null,
    sent_time: row.sent_time ?? null,
  });
  return acceptErased(row, message, 'the message was forgotten before this node received it');
}

/**
 * What proves who signed a message of which no text is left, for `verifyShared`; undefined of an envelope, whose signature covers the text.
 * Of an upload the signature covers the file's hash.
 */
export function erasedProof({ message, subject }: Accepted): string | undefined {
  const { form, sender, signature, channel, time } = message;
  if (form === 'network') return sharedText(message);
  if (form === 'envelope') return undefined;
  const upload = { address: sender, file_hash: subject, size: 0, signature, channel, time };
  return JSON.stringify({ upload, noted_ms: 0 });
}

/** Throws INVALID_SIGNATURE where the proof is of another message. */
export function checkErased({ message }: Accepted, proven: VerifiedMessage): void {
  if (!isSameSigned(message, proven))
    throw new AppError('INVALID_SIGNATURE', 'a forgotten message is not as its sender signed it');
}
