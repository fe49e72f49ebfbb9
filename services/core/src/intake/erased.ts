import { AppError, createParser, LIMITS } from '@skerry/protocol';
import { type TSchema, Type } from '@skerry/protocol/type';
import type { Accepted } from './accepted.ts';
import { acceptErased, type StoredMessage, verifiedOf } from './stored.ts';

/**
 * A forgotten message whose text was erased (erase.ts), as nodes pass it on: what its FORGET needs to be judged,
 * and nothing that it said. No signature covers this, so it is the peer's word; a message that can be verified takes its place.
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

/** @throws AppError INVALID_JSON, INVALID_ENVELOPE */
export function acceptErasedFrame(frame: Buffer): Accepted {
  let value: unknown;
  try {
    value = JSON.parse(frame.toString());
  } catch (cause) {
    throw new AppError('INVALID_JSON', 'a forgotten message is not JSON', { cause });
  }
  const { forgotten: row } = parseErased(value);
  const message = verifiedOf({
    ...row,
    content: null,
    source_text: null,
    sent_time: row.sent_time ?? null,
  });
  return acceptErased(row, message, 'the message was forgotten before this node received it');
}
