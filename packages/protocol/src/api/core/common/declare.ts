import { EnvelopeShape } from '../../../content/envelope-shape.ts';
import type { ErrorCode } from '../../../errors.ts';
import type { TSchema } from '../../../type.ts';
import type { SignedBody } from '../../operation.ts';

/** What the operations of a core node have in common: each is spread into an operation, which says the rest of itself. */

type Errors = readonly ErrorCode[];

/** Reads the database. @param errors what it may answer beside what every such operation may */
export const reads = (
  ...errors: ErrorCode[]
): { readonly rateClass: 'general'; readonly errors: Errors } => ({
  rateClass: 'general',
  errors: ['DATABASE_UNAVAILABLE', 'OVERLOADED', ...errors],
});

/** What deployed clients call: they look for 422 where a request is wrong. */
export const asDeployed = { refusesWith: 422 } as const;

/** Answers from memory. */
export const answersFromMemory = (
  ...errors: ErrorCode[]
): { readonly rateClass: 'general'; readonly errors: Errors } => ({ rateClass: 'general', errors });

/** Answers from memory, and must answer always. */
export const answersAlways = (): { readonly rateClass: 'unlimited'; readonly errors: Errors } => ({
  rateClass: 'unlimited',
  errors: [],
});

/** The envelope around a content, for the document. What checks it is the intake, on the bytes that are signed. */
const envelopeAround = ({ type, content }: { readonly type: string; readonly content: TSchema }) => ({
  ...EnvelopeShape,
  properties: {
    ...EnvelopeShape.properties,
    message: {
      ...EnvelopeShape.properties.message,
      properties: { ...EnvelopeShape.properties.message.properties, type: { const: type }, content },
    },
  },
});

/** Takes a signed message of one type. */
export const takesSigned = (
  signed: { readonly type: string; readonly content: TSchema },
  ...errors: ErrorCode[]
): { readonly rateClass: 'authenticated'; readonly errors: Errors; readonly body: SignedBody } => ({
  rateClass: 'authenticated',
  errors: ['DATABASE_UNAVAILABLE', ...errors],
  body: { kind: 'signed', schema: envelopeAround(signed) },
});
