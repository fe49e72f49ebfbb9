import { LIMITS } from '../limits.ts';
import { Type } from '../type.ts';

export const Tags = Type.Array(Type.String({ minLength: 1, maxLength: LIMITS.tagChars }), {
  maxItems: LIMITS.tags,
});

/** Tags of a place where anything may stand: what is no tag is no fault. */
export function readTags(value: unknown): string[] {
  if (!Array.isArray(value)) return [];
  const tags = value.filter(
    (tag): tag is string => typeof tag === 'string' && tag !== '' && tag.length <= LIMITS.tagChars,
  );
  return [...new Set(tags)].slice(0, LIMITS.tags);
}
