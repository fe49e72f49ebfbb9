import type { PersonalClaim } from '@skerry/protocol';

/** A signature, and the key that must have made it: 65 bytes, uncompressed. */
export interface KeyedClaim {
  readonly claim: PersonalClaim;
  readonly key: Uint8Array;
}

/** Claims in one batch (MAX_CLAIMS of native/batch.c). */
export const CLAIMS_MAX = 512;
const CLAIM_BYTES = 100;
const KEY_BYTES = 64;

/** As native/batch.c reads them. Keys are told apart by identity: the same one twice costs time and nothing else. */
export function packClaims(claims: readonly KeyedClaim[]): { claims: Uint8Array; keys: Uint8Array } {
  const numbers = new Map<Uint8Array, number>();
  const packed = new Uint8Array(claims.length * CLAIM_BYTES);
  for (const [index, { claim, key }] of claims.entries()) {
    const number = numbers.get(key) ?? numbers.size;
    numbers.set(key, number);
    const at = index * CLAIM_BYTES;
    packed.set(claim.digest, at);
    packed.set(claim.rs, at + 32);
    packed[at + 96] = number & 0xff;
    packed[at + 97] = number >> 8;
    packed[at + 98] = claim.recoveryId;
  }
  const keys = new Uint8Array(numbers.size * KEY_BYTES);
  for (const [key, number] of numbers) keys.set(key.subarray(1), number * KEY_BYTES);
  return { claims: packed, keys };
}
