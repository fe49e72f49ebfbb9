import { LIMITS } from '../../limits.ts';
import { createParser } from '../../schema.ts';
import { type Static, Type } from '../../type.ts';
import { AnyHash, head, Maybe, strict } from './base.ts';

const Hashes = Type.Array(AnyHash, { maxItems: LIMITS.forgetHashes });

export const NetworkForgetContent = Type.Object(
  {
    ...head,
    hashes: Hashes,
    /** Of AGGREGATE messages; they are item hashes like the others. */
    aggregates: Maybe(Hashes),
    reason: Maybe(Type.String({ maxLength: LIMITS.forgetReasonChars })),
  },
  strict,
);
export type NetworkForgetContent = Static<typeof NetworkForgetContent>;

export const parseNetworkForgetContent = createParser(NetworkForgetContent, 'content');
