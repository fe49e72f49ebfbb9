import { sha512 } from '@noble/hashes/sha2.js';
import { concatBytes } from './group.ts';
import type { VrfRange } from './request.ts';

const STREAM_DOMAIN = new TextEncoder().encode('net-vrf-stream-1\n');
const WORD_BYTES = 8;
const WORDS = 2n ** 64n;
/**
 * Blocks of 8 words. A word is refused with a chance below 2^-10 (a span has at most 2^54 - 1 values), so that 1000 values
 * need 126 blocks and never 1000: a stream that long means a fault.
 */
const BLOCKS_MAX = 1000;

/** SHA-512 in counter mode over the VRF's output: words of 64 bits, big-endian. */
function* wordsOf(output: Uint8Array): Generator<bigint> {
  const counter = new Uint8Array(4);
  for (let block = 0; block < BLOCKS_MAX; block++) {
    new DataView(counter.buffer).setUint32(0, block);
    const bytes = sha512(concatBytes(STREAM_DOMAIN, output, counter));
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    for (let at = 0; at < bytes.length; at += WORD_BYTES) yield view.getBigUint64(at);
  }
}

/**
 * The values that follow from a VRF's output, each as likely as every other: of the 2^64 words, those above the largest
 * multiple of the span are passed over, the others are taken modulo the span.
 *
 * @param output the VRF's output (beta_string), whole
 * @returns `count` integers from `min` to `max`; the same may come more than once
 */
export function reduceToRange(output: Uint8Array, { min, max, count }: VrfRange): number[] {
  const low = BigInt(min);
  const span = BigInt(max) - low + 1n;
  const fair = WORDS - (WORDS % span);
  const values: number[] = [];
  for (const word of wordsOf(output)) {
    if (word >= fair) continue;
    values.push(Number(low + (word % span)));
    if (values.length === count) return values;
  }
  throw new RangeError('the stream of words ended before the values were found');
}
