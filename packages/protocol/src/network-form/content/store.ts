import { checkFileHash } from '../../content/store.ts';
import { LIMITS } from '../../limits.ts';
import { createParser } from '../../schema.ts';
import { type Static, Type } from '../../type.ts';
import { AnyHash, head, Maybe, paymentBy } from './base.ts';

/** STORE. Unlike in the other contents, unknown keys are dropped: clients add what they like (`mime_type`, `extra_fields`). */
export const NetworkStoreContent = Type.Object({
  ...head,
  item_type: Type.Union([Type.Literal('storage'), Type.Literal('ipfs')]),
  item_hash: AnyHash,
  size: Maybe(Type.Integer({ minimum: 0, description: 'bytes' })),
  content_type: Maybe(Type.String({ maxLength: 255 })),
  ref: Maybe(Type.String({ maxLength: LIMITS.refChars })),
  metadata: Maybe(Type.Record(Type.String(), Type.Unknown())),
  payment: Maybe(paymentBy('hold', 'credit')),
  /** Not a key of the deployed model, but where its `tags` filter looks. */
  tags: Type.Optional(Type.Unknown()),
});
export type NetworkStoreContent = Static<typeof NetworkStoreContent>;

const KNOWN = new Set(Object.keys(NetworkStoreContent.properties));
const parseShape = createParser(NetworkStoreContent, 'content');

export function parseNetworkStoreContent(value: unknown): NetworkStoreContent {
  const content = parseShape(value);
  checkFileHash(content);
  return Object.fromEntries(Object.entries(content).filter(([key]) => KNOWN.has(key))) as NetworkStoreContent;
}
