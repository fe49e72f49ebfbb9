import Type from 'typebox';
import { LIMITS } from '../limits.ts';

export const Tags = Type.Array(Type.String({ minLength: 1, maxLength: LIMITS.tagChars }), {
  maxItems: LIMITS.tags,
});
