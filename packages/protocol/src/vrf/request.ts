import { AppError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { createParser } from '../schema.ts';
import { type Static, Type } from '../type.ts';
import { concatBytes } from './group.ts';

const SafeInteger = (description: string) =>
  Type.Integer({ minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER, description });

/** The body of POST /vrf/generate. */
export const VrfRequestBody = Type.Object(
  {
    seed: Type.String({ description: `any text, 1 to ${LIMITS.vrfSeedBytes} bytes in UTF-8` }),
    min: Type.Optional(SafeInteger('the lowest value; 0 when absent')),
    max: Type.Optional(SafeInteger(`the highest value; ${Number.MAX_SAFE_INTEGER} when absent`)),
    count: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: LIMITS.vrfCountMax,
        description: 'how many values; 1 when absent',
      }),
    ),
  },
  { additionalProperties: false },
);

/** What is asked for: `count` values, each from `min` to `max`, both included. */
export interface VrfRequest {
  readonly seed: string;
  readonly min: number;
  readonly max: number;
  readonly count: number;
}

/** What decides the answer beside the seed, and stands in the token. */
export type VrfRange = Omit<VrfRequest, 'seed'>;

const parseBody: (value: unknown) => Static<typeof VrfRequestBody> = createParser(
  VrfRequestBody,
  'the request',
  'INVALID_PARAMETERS',
);

export const RANGE_BYTES = 18;
/** The domain of the input, with the version of its form. */
const INPUT_DOMAIN = new TextEncoder().encode('net-vrf-input-1\n');

/** The bytes of a seed, exactly as given; undefined where it is empty, too long, or no Unicode text (a lone surrogate). */
export function seedBytesOf(seed: string): Uint8Array | undefined {
  if (seed === '' || seed.length > LIMITS.vrfSeedBytes || !seed.isWellFormed()) return undefined;
  const bytes = new TextEncoder().encode(seed);
  return bytes.length > LIMITS.vrfSeedBytes ? undefined : bytes;
}

/** Why a range cannot be drawn from, or undefined. */
function rangeFault({ min, max, count }: VrfRange): string | undefined {
  for (const [name, value] of Object.entries({ min, max })) {
    if (!Number.isSafeInteger(value))
      return `${name} is a whole number from -(2^53 - 1) to 2^53 - 1, not ${value}`;
  }
  if (min > max) return `min (${min}) is above max (${max})`;
  if (!Number.isInteger(count) || count < 1 || count > LIMITS.vrfCountMax)
    return `count is a whole number from 1 to ${LIMITS.vrfCountMax}, not ${count}`;
  return undefined;
}

/**
 * A request as anyone may send it, with what is usual where a field is absent: one value from 0 to 2^53 - 1, as much
 * randomness as a JSON number carries exactly.
 *
 * @throws AppError INVALID_PARAMETERS, UNKNOWN_FIELD
 */
export function parseVrfRequest(value: unknown): VrfRequest {
  const { seed, min = 0, max = Number.MAX_SAFE_INTEGER, count = 1 } = parseBody(value);
  if (seedBytesOf(seed) === undefined)
    throw new AppError(
      'INVALID_PARAMETERS',
      `seed is a text of 1 to ${LIMITS.vrfSeedBytes} bytes in UTF-8, without lone surrogates`,
    );
  const fault = rangeFault({ min, max, count });
  if (fault !== undefined) throw new AppError('INVALID_PARAMETERS', fault);
  return { seed, min, max, count };
}

/** min and max (8 bytes each, two's complement), count (2 bytes), all big-endian: 18 bytes. */
export function encodeRange({ min, max, count }: VrfRange): Uint8Array {
  const bytes = new Uint8Array(RANGE_BYTES);
  const view = new DataView(bytes.buffer);
  view.setBigInt64(0, BigInt(min));
  view.setBigInt64(8, BigInt(max));
  view.setUint16(16, count);
  return bytes;
}

/** The inverse of encodeRange; undefined for a range that cannot be drawn from. */
export function parseRange(bytes: Uint8Array): VrfRange | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, RANGE_BYTES);
  const range = {
    min: Number(view.getBigInt64(0)),
    max: Number(view.getBigInt64(8)),
    count: view.getUint16(16),
  };
  return rangeFault(range) === undefined ? range : undefined;
}

/**
 * The input of the VRF (alpha_string of RFC 9381): a domain, the range, the seed last, so that no two requests share one.
 * The range is part of it because then a token's range cannot be exchanged under a proof, and because answers for two
 * ranges of one seed tell nothing about each other.
 */
export function encodeVrfInput(seedBytes: Uint8Array, range: VrfRange): Uint8Array {
  return concatBytes(INPUT_DOMAIN, encodeRange(range), seedBytes);
}
