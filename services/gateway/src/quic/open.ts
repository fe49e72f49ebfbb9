import { type Cipheriv, createCipheriv, createDecipheriv } from 'node:crypto';
import type { InitialKeys } from './keys.ts';
import type { LengthyPacket } from './packet.ts';

export const TAG_BYTES = 16;
const SAMPLE_BYTES = 16;
/** Where the sample begins, behind the place of the packet number (RFC 9001 §5.4.2). */
const SAMPLE_OFFSET = 4;
/** Of the first byte, in packets with a long header (RFC 9001 §5.4.1). */
const PROTECTED_BITS = 0x0f;
const NUMBER_BYTES_MASK = 3;

/** Of each block apart, so one serves all packets with the same keys. */
const headerCiphers = new WeakMap<InitialKeys, Cipheriv>();

/** RFC 9001 §5.4.3. */
export function headerMask(keys: InitialKeys, sample: Uint8Array): Uint8Array {
  const cipher = headerCiphers.get(keys) ?? createCipheriv('aes-128-ecb', keys.headerKey, null);
  headerCiphers.set(keys, cipher);
  return cipher.update(sample);
}

/** RFC 9001 §5.3. */
export function nonceOf({ iv }: InitialKeys, number: number): Uint8Array {
  const nonce = Uint8Array.from(iv);
  const low = new DataView(nonce.buffer, nonce.length - 4);
  low.setUint32(0, low.getUint32(0) ^ number);
  return nonce;
}

/**
 * The payload of an Initial packet; undefined where it does not authenticate.
 *
 * @param bytes from the packet's first one on
 */
export function openInitial(
  keys: InitialKeys,
  bytes: Uint8Array,
  { numberAt, end }: LengthyPacket,
): Uint8Array | undefined {
  const sampleAt = numberAt + SAMPLE_OFFSET;
  if (end - sampleAt < SAMPLE_BYTES) return undefined;
  const mask = headerMask(keys, bytes.subarray(sampleAt, sampleAt + SAMPLE_BYTES));
  const first = bytes[0]! ^ (mask[0]! & PROTECTED_BITS);
  const payloadAt = numberAt + (first & NUMBER_BYTES_MASK) + 1;
  if (end - payloadAt < TAG_BYTES) return undefined;
  const header = Uint8Array.from(bytes.subarray(0, payloadAt));
  header[0] = first;
  let number = 0;
  for (let at = numberAt; at < payloadAt; at++) {
    header[at] = header[at]! ^ mask[1 + at - numberAt]!;
    // Nothing was acknowledged before: what is there of the number is all of it (RFC 9000 appendix A.2).
    number = number * 256 + header[at]!;
  }
  const decipher = createDecipheriv('aes-128-gcm', keys.key, nonceOf(keys, number));
  decipher.setAAD(header).setAuthTag(bytes.subarray(end - TAG_BYTES, end));
  const payload = decipher.update(bytes.subarray(payloadAt, end - TAG_BYTES));
  try {
    decipher.final();
    return payload;
  } catch {
    return undefined;
  }
}
