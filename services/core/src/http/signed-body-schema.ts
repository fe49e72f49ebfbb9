import { EnvelopeShape } from '@skerry/protocol';
import Type from 'typebox';

/** The network form's body (docs/wire-forms.md). */
const NetworkBody = Type.Object({
  sync: Type.Optional(
    Type.Boolean({ description: 'accepted and without effect: answers come after the verdict' }),
  ),
  message: Type.Object({
    chain: Type.String(),
    sender: Type.String(),
    type: Type.String(),
    channel: Type.Optional(Type.Union([Type.String(), Type.Null()])),
    time: Type.Number({ description: 'Unix seconds, with fraction' }),
    item_type: Type.Optional(Type.Enum(['inline', 'storage', 'ipfs'])),
    item_hash: Type.String(),
    item_content: Type.Optional(Type.Union([Type.String(), Type.Null()])),
    signature: Type.String(),
  }),
});

/** A body of `POST /messages`, for the document. */
export const anySignedBody = Type.Union([EnvelopeShape, NetworkBody]);

/** The schema of a signed body for the document. What checks it is the intake, on the bytes. */
export const signedBodySchema = (content?: Type.TSchema, type?: string) => ({
  ...EnvelopeShape,
  properties: {
    ...EnvelopeShape.properties,
    message: {
      ...EnvelopeShape.properties.message,
      properties: {
        ...EnvelopeShape.properties.message.properties,
        ...(type === undefined ? {} : { type: { const: type } }),
        ...(content === undefined ? {} : { content }),
      },
    },
  },
});
