import { AMEND } from '../../content/post.ts';
import { AppError } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';
import { createParser } from '../../schema.ts';
import { type Static, Type } from '../../type.ts';
import { AnyHash, head, Maybe, strict } from './base.ts';

/** A whole message in the place of its hash, as old clients wrote references. Only its hash means anything. */
const ChainRef = Type.Object(
  {
    chain: Type.String({ maxLength: 16 }),
    channel: Maybe(Type.String({ maxLength: LIMITS.channelChars })),
    item_content: Maybe(Type.String()),
    item_hash: AnyHash,
    item_type: Type.String({ maxLength: 16 }),
    sender: Type.String({ maxLength: LIMITS.addressChars }),
    signature: Maybe(Type.String({ maxLength: LIMITS.signatureChars })),
    time: Type.Number(),
    type: Type.Literal('POST'),
  },
  strict,
);

export const NetworkPostContent = Type.Object(
  {
    ...head,
    type: Type.String({ minLength: 1, maxLength: LIMITS.postTypeChars }),
    content: Type.Optional(Type.Unknown()),
    ref: Maybe(Type.Union([Type.String({ maxLength: LIMITS.refChars }), ChainRef])),
  },
  strict,
);
export type NetworkPostContent = Static<typeof NetworkPostContent>;

const parseShape = createParser(NetworkPostContent, 'content');

export function parseNetworkPostContent(value: unknown): NetworkPostContent {
  const content = parseShape(value);
  if (content.type === AMEND && !content.ref) {
    throw new AppError('INVALID_CONTENT', 'a post of type amend needs content.ref, the post that it amends');
  }
  return content;
}
