import { LIMITS } from '../limits.ts';
import { Type } from '../type.ts';

const strict = { additionalProperties: false } as const;

/** The signed part of a request body (specification, "Authentication"). */
export const MessageShape = Type.Object(
  {
    chain: Type.String({ minLength: 1, maxLength: 16 }),
    channel: Type.String({ minLength: 1, maxLength: LIMITS.channelChars }),
    type: Type.String({ minLength: 1, maxLength: 32 }),
    timestamp: Type.Integer({ minimum: 0, maximum: 9_223_372_036, description: 'Unix seconds' }),
    content: Type.Record(Type.String(), Type.Unknown()),
    nonce: Type.Optional(Type.String({ maxLength: LIMITS.nonceChars })),
  },
  strict,
);

export const EnvelopeShape = Type.Object(
  {
    message: MessageShape,
    signature: Type.String({ minLength: 1, maxLength: LIMITS.signatureChars }),
    address: Type.String({ minLength: 1, maxLength: LIMITS.addressChars }),
  },
  strict,
);
