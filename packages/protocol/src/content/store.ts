import { AppError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { ANY_HASH_PATTERN, parseMessageHash } from '../network-form/item-hash.ts';
import { createParser } from '../schema.ts';
import { type Static, Type } from '../type.ts';
import { OnBehalfOf } from './on-behalf.ts';
import { Tags } from './tags.ts';

/** STORE: this file belongs to this address. `item_hash` is the SHA-256 of the file's bytes, or its CID on IPFS. */
export const StoreContent = Type.Object(
  {
    item_type: Type.Union([Type.Literal('storage'), Type.Literal('ipfs')]),
    item_hash: Type.String({ pattern: ANY_HASH_PATTERN }),
    size: Type.Optional(Type.Integer({ minimum: 0, description: 'bytes' })),
    content_type: Type.Optional(Type.String({ maxLength: 255 })),
    ref: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: LIMITS.refChars,
        description: 'the STORE message that this is a new version of, or a name of the owner for the file',
      }),
    ),
    tags: Type.Optional(Tags),
    address: Type.Optional(OnBehalfOf),
  },
  { additionalProperties: false },
);
export type StoreContent = Static<typeof StoreContent>;

/** A file is named as its place names files. Throws INVALID_CONTENT. */
export function checkFileHash(content: Pick<StoreContent, 'item_type' | 'item_hash'>): void {
  if (parseMessageHash(content.item_hash).itemType !== content.item_type) {
    throw new AppError(
      'INVALID_CONTENT',
      `content.item_hash does not have the form that item_type ${content.item_type} asks for`,
    );
  }
}

const parseShape = createParser(StoreContent, 'content');

export function parseStoreContent(value: unknown): StoreContent {
  const content = parseShape(value);
  checkFileHash(content);
  return content;
}
