import { LIMITS } from '../limits.ts';
import { ANY_HASH_PATTERN } from '../network-form/item-hash.ts';
import { createParser } from '../schema.ts';
import { type Static, Type } from '../type.ts';
import { OnBehalfOf } from './on-behalf.ts';

/** FORGET: these messages lose their content and their effect. */
export const ForgetContent = Type.Object(
  {
    hashes: Type.Array(Type.String({ pattern: ANY_HASH_PATTERN }), {
      minItems: 1,
      maxItems: LIMITS.forgetHashes,
      uniqueItems: true,
      description: 'item hashes',
    }),
    reason: Type.Optional(Type.String({ maxLength: LIMITS.forgetReasonChars })),
    address: Type.Optional(OnBehalfOf),
  },
  { additionalProperties: false },
);
export type ForgetContent = Static<typeof ForgetContent>;

export const parseForgetContent = createParser(ForgetContent, 'content');
