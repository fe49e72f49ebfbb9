import { readVarint } from './packet.ts';

/** Types of the frames that an Initial packet may have (RFC 9000 §12.4). */
export const FRAME = {
  padding: 0,
  ping: 1,
  ack: 2,
  ackWithEcn: 3,
  crypto: 6,
  connectionClose: 0x1c,
} as const;
/** An ACK frame's largest number, delay and first range; what counts its other ranges stands between. */
const ACK_NUMBERS_BEFORE_COUNT = 2;
const NUMBERS_PER_RANGE = 2;
const ECN_COUNTS = 3;
/** A CONNECTION_CLOSE frame's error code and frame type. */
const CLOSE_NUMBERS = 2;

/** Reads numbers and bytes one after another; `isBroken` once something did not fit. */
class Cursor {
  readonly #bytes: Uint8Array;
  #at = 0;
  isBroken = false;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  number(): number {
    const read = readVarint(this.#bytes, this.#at);
    this.isBroken ||= read === undefined;
    this.#at = read?.end ?? this.#bytes.length;
    return read?.value ?? 0;
  }

  bytes(length: number): Uint8Array {
    this.isBroken ||= length > this.#bytes.length - this.#at;
    const taken = this.#bytes.subarray(this.#at, this.#at + length);
    this.#at += taken.length;
    return taken;
  }

  skipNumbers(count: number): void {
    for (let left = count; left > 0 && !this.isBroken; left--) this.number();
  }
}

function skipAck(cursor: Cursor, hasEcn: boolean): void {
  cursor.skipNumbers(ACK_NUMBERS_BEFORE_COUNT);
  const ranges = cursor.number();
  cursor.skipNumbers(1 + ranges * NUMBERS_PER_RANGE + (hasEcn ? ECN_COUNTS : 0));
}

/**
 * Gives every CRYPTO frame of an Initial packet's payload to `onCrypto`, until that returns false. False where the payload is
 * not what RFC 9000 §12.4 allows, or it returned so.
 */
export function readFrames(
  payload: Uint8Array,
  onCrypto: (offset: number, data: Uint8Array) => boolean,
): boolean {
  const cursor = new Cursor(payload);
  while (!cursor.isAtEnd) {
    switch (cursor.number()) {
      case FRAME.padding:
      case FRAME.ping:
        break;
      case FRAME.ack:
        skipAck(cursor, false);
        break;
      case FRAME.ackWithEcn:
        skipAck(cursor, true);
        break;
      case FRAME.crypto: {
        const offset = cursor.number();
        const data = cursor.bytes(cursor.number());
        if (cursor.isBroken || !onCrypto(offset, data)) return false;
        break;
      }
      case FRAME.connectionClose:
        cursor.skipNumbers(CLOSE_NUMBERS);
        cursor.bytes(cursor.number());
        break;
      default:
        return false;
    }
    if (cursor.isBroken) return false;
  }
  return true;
}
