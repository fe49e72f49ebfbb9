import Type, { type Static } from 'typebox';
import { LIMITS } from '../limits.ts';
import { createParser } from '../schema.ts';

/** STORE: this file belongs to this address. `item_hash` is the SHA-256 of the file's bytes. */
export const StoreContent = Type.Object(
  {
    item_type: Type.Literal('storage'),
    item_hash: Type.String({ pattern: '^[0-9a-f]{64}$' }),
    size: Type.Optional(Type.Integer({ minimum: 0, description: 'bytes' })),
    content_type: Type.Optional(Type.String({ maxLength: 255 })),
    tags: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: LIMITS.tagChars }), { maxItems: LIMITS.tags }),
    ),
  },
  { additionalProperties: false },
);
export type StoreContent = Static<typeof StoreContent>;

export const parseStoreContent = createParser(StoreContent, 'content');
