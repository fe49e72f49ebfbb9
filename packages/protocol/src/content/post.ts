import { AppError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { createParser } from '../schema.ts';
import { type Static, Type } from '../type.ts';
import { OnBehalfOf } from './on-behalf.ts';
import { readTags, Tags } from './tags.ts';

/** The post type whose content takes the place of an earlier post's, named by `ref`. */
export const AMEND = 'amend';

/** POST: a typed note; `content` is whatever the type means. */
export const PostContent = Type.Object(
  {
    type: Type.String({ minLength: 1, maxLength: LIMITS.postTypeChars }),
    content: Type.Optional(Type.Unknown()),
    ref: Type.Optional(Type.String({ maxLength: LIMITS.refChars })),
    tags: Type.Optional(Tags),
    address: Type.Optional(OnBehalfOf),
  },
  { additionalProperties: false },
);
export type PostContent = Static<typeof PostContent>;

const parseShape = createParser(PostContent, 'content');

export function parsePostContent(value: unknown): PostContent {
  const content = parseShape(value);
  if (content.type === AMEND && !content.ref) {
    throw new AppError('INVALID_CONTENT', 'a post of type amend needs content.ref, the post that it amends');
  }
  return content;
}

/** Where deployed nodes look for the tags of a POST: `content.content.tags`. */
export const innerTagsOf = (content: unknown): unknown =>
  typeof content === 'object' && content !== null && Object.hasOwn(content, 'tags')
    ? (content as { readonly tags: unknown }).tags
    : undefined;

/** The tags of a POST, from both places where they may stand. */
export function tagsOfPost({ tags, content }: PostContent): readonly string[] {
  const inner = innerTagsOf(content);
  return tags === undefined && inner === undefined
    ? NO_TAGS
    : readTags([...(tags ?? []), ...readTags(inner)]);
}

/** Most have none. */
const NO_TAGS: readonly string[] = [];
