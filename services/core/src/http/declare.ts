import type { LimitedClass, RateClass } from '@skerry/kit';
import type { ErrorCode } from '@skerry/protocol';
import type { FastifyContextConfig } from 'fastify';
import type Type from 'typebox';
import { anySignedBody, signedBodySchema } from './signed-body-schema.ts';

/** A body as the document shows it; what checks it is the route's own reader. */
export interface DocumentedBody {
  readonly contentType: string;
  readonly schema: object;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the route may answer beside what follows from its class and its parameters (document.ts). */
    errors?: readonly ErrorCode[];
    body?: DocumentedBody;
  }
}

/** What a route declares of itself: `config` of every route of the core node is one of the four below. */
type Declaration = FastifyContextConfig & { rateClass: RateClass; errors: readonly ErrorCode[] };

const DATABASE_ERRORS: readonly ErrorCode[] = ['DATABASE_UNAVAILABLE'];
const BODY_ERRORS: readonly ErrorCode[] = ['BODY_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE', 'INVALID_JSON'];
const SIGNED_ERRORS: readonly ErrorCode[] = [
  ...BODY_ERRORS,
  'INVALID_ENVELOPE',
  'UNKNOWN_FIELD',
  'UNKNOWN_MESSAGE_TYPE',
  'UNKNOWN_CHAIN',
  'INVALID_CONTENT',
  'INVALID_ADDRESS',
  'TIMESTAMP_IN_FUTURE',
  'SIGNATURE_REQUIRED',
  'INVALID_SIGNATURE',
  'NOT_PERMITTED',
  'OVERLOADED',
  'STORAGE_FULL',
];

/** A route that reads what is kept. @param errors what it may answer beside what every such route may */
export const reads = (...errors: ErrorCode[]): Declaration => ({
  rateClass: 'general',
  errors: [...DATABASE_ERRORS, ...errors],
});

/** A route that takes a signed message. @param type the only type that it takes, where it takes one */
export const takesSigned = (
  signed: { readonly type?: string; readonly content?: Type.TSchema; readonly alsoNetworkForm?: boolean },
  ...errors: ErrorCode[]
): Declaration => ({
  rateClass: 'authenticated',
  errors: [...DATABASE_ERRORS, ...SIGNED_ERRORS, ...errors],
  body: {
    contentType: 'application/json',
    schema: signed.alsoNetworkForm ? anySignedBody : signedBodySchema(signed.content, signed.type),
  },
});

/** A route that takes a body that is no signed message. */
export const takesBody = (
  rateClass: LimitedClass,
  body: DocumentedBody,
  ...errors: ErrorCode[]
): Declaration => ({ rateClass, errors: [...DATABASE_ERRORS, ...BODY_ERRORS, ...errors], body });

/** A route that answers from memory and must answer always. */
export const answersAlways = (): Declaration => ({ rateClass: 'unlimited', errors: [] });

/** A route that answers from memory. */
export const answersFromMemory = (...errors: ErrorCode[]): Declaration => ({ rateClass: 'general', errors });
