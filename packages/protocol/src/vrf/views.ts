import { LIMITS } from '../limits.ts';
import { createParser } from '../schema.ts';
import { type Static, Type } from '../type.ts';
import type { VrfAnswer, VrfVerdict } from './token.ts';

/** Shapes of the VRF's HTTP interface (specification, "VRF"), and of `skerry vrf --json`. */

const TOKEN_CHARS_MAX = 1024;
const Values = Type.Array(Type.Integer(), { maxItems: LIMITS.vrfCountMax });

export const VrfAnswerView = Type.Object({
  seed: Type.String(),
  min: Type.Integer(),
  max: Type.Integer(),
  count: Type.Integer(),
  value: Type.Integer({ description: 'the first of the values' }),
  values: Values,
  proof: Type.String({ description: '0x and hexadecimal digits: a token that says everything but the seed' }),
  public_key: Type.String(),
  status: Type.Literal('success'),
});
export type VrfAnswerView = Static<typeof VrfAnswerView>;

export const VrfVerdictView = Type.Object({
  valid: Type.Boolean(),
  status: Type.Literal('success'),
  reason: Type.Optional(Type.Object({ code: Type.String(), message: Type.String() })),
  suite: Type.Optional(Type.String()),
  public_key: Type.Optional(Type.String()),
  min: Type.Optional(Type.Integer()),
  max: Type.Optional(Type.Integer()),
  count: Type.Optional(Type.Integer()),
  values: Type.Optional(Values),
});
export type VrfVerdictView = Static<typeof VrfVerdictView>;

/** The body of POST /vrf/verify. */
export const VrfClaimBody = Type.Object(
  {
    seed: Type.String(),
    value: Type.Optional(Type.Integer({ description: 'the first value' })),
    values: Type.Optional(Values),
    proof: Type.String({ maxLength: TOKEN_CHARS_MAX }),
    min: Type.Optional(Type.Integer()),
    max: Type.Optional(Type.Integer()),
    count: Type.Optional(Type.Integer()),
    public_key: Type.Optional(Type.String({ maxLength: TOKEN_CHARS_MAX })),
    status: Type.Optional(Type.Literal('success', { description: 'of the answer; means nothing here' })),
  },
  {
    additionalProperties: false,
    description: 'the answer of POST /vrf/generate, or as much of it as one has',
  },
);
export type VrfClaimBody = Static<typeof VrfClaimBody>;

/** A core node's key for random values, as it publishes it. */
export const VrfKeyView = Type.Object({
  suite: Type.String({ description: 'ciphersuite of RFC 9381' }),
  public_key: Type.String({ description: 'hexadecimal' }),
  from: Type.Integer({ description: 'Unix seconds' }),
  until: Type.Union([Type.Integer(), Type.Null()], { description: 'Unix seconds; null for the key in use' }),
});
export type VrfKeyView = Static<typeof VrfKeyView>;

/** @throws AppError INVALID_PARAMETERS, UNKNOWN_FIELD */
export const parseVrfClaim: (value: unknown) => VrfClaimBody = createParser(
  VrfClaimBody,
  'the request',
  'INVALID_PARAMETERS',
);

export function viewOfVrfAnswer({ publicKey, ...answer }: VrfAnswer): VrfAnswerView {
  return { ...answer, public_key: publicKey, status: 'success' };
}

export function viewOfVrfVerdict({ publicKey, ...verdict }: VrfVerdict): VrfVerdictView {
  return {
    ...verdict,
    ...(publicKey === undefined ? {} : { public_key: publicKey }),
    status: 'success',
  } as VrfVerdictView;
}
