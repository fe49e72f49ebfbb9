import { hexToBytes, keccak256 } from '@skerry/protocol';

/**
 * A block's bloom filter says of an address or topic that it is surely not, or perhaps, in the block's logs
 * (Yellow Paper, section 4.3.1): three bits of 2048, from the first three pairs of bytes of the Keccak-256.
 */
export type BloomBits = readonly [number, number, number];

const BLOOM_BYTES = 256;
/** Values whose bits are kept: each block is looked through for the same ones. */
const KEPT_MAX = 32_768;
const kept = new Map<string, BloomBits>();

/** @param value an address or a topic, `0x…` */
export function bloomBitsOf(value: string): BloomBits {
  let bits = kept.get(value);
  if (!bits) {
    if (kept.size >= KEPT_MAX) kept.clear();
    bits = hashBits(value);
    kept.set(value, bits);
  }
  return bits;
}

function hashBits(value: string): BloomBits {
  const hash = keccak256(hexToBytes(value)!);
  const bit = (place: number) => ((hash[place]! << 8) | hash[place + 1]!) & 2047;
  return [bit(0), bit(2), bit(4)];
}

/** @param bloom `0x` and 512 digits; bit 0 is the lowest of the last byte */
export function mayContain(bloom: string, bits: BloomBits): boolean {
  return bits.every((bit) => {
    const at = 2 + 2 * (BLOOM_BYTES - 1 - (bit >> 3));
    return (Number.parseInt(bloom.slice(at, at + 2), 16) & (1 << (bit & 7))) !== 0;
  });
}

/** Of 2048 bits: below it three random bits are all set in less than one block of a thousand. */
const TELLING_BITS = 200;
const BITS_OF = [0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4];

/** Whether a match is nearly a proof: where few bits are set, chance matches are rare; a full one matches everything. */
export function isTelling(bloom: string): boolean {
  let bits = 0;
  for (let at = 2; at < bloom.length; at++) bits += BITS_OF[Number.parseInt(bloom[at]!, 16)]!;
  return bits < TELLING_BITS;
}
