import Type, { type Static } from 'typebox';
import { LIMITS } from '../limits.ts';
import { createParser } from '../schema.ts';

/** POST: a typed note; `content` is whatever the type means. */
export const PostContent = Type.Object(
  {
    type: Type.String({ minLength: 1, maxLength: LIMITS.postTypeChars }),
    content: Type.Optional(Type.Unknown()),
    ref: Type.Optional(Type.String({ maxLength: LIMITS.refChars })),
    tags: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: LIMITS.tagChars }), { maxItems: LIMITS.tags }),
    ),
  },
  { additionalProperties: false },
);
export type PostContent = Static<typeof PostContent>;

export const parsePostContent = createParser(PostContent, 'content');
