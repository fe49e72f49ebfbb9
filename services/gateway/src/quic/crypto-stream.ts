import { findServerName, type ServerNameAnswer } from '../tls/server-name.ts';

/** A ClientHello with its header: a first flight of post-quantum size is 2 KB. */
export const MAX_QUIC_HELLO_BYTES = 16 * 1024;
/** Pieces with holes between them; Chromium cuts its hello into 18. */
export const MAX_PIECES = 64;

const FIRST_CAPACITY = 2048;
const HEADER_BYTES = 4;
const CLIENT_HELLO = 1;

interface Piece {
  readonly start: number;
  readonly end: number;
}

/** The pieces with one more, those that touch joined, in their order. */
function withPiece(pieces: readonly Piece[], added: Piece): Piece[] {
  const before = pieces.filter(({ end }) => end < added.start);
  const behind = pieces.filter(({ start }) => start > added.end);
  const touched = pieces.slice(before.length, pieces.length - behind.length);
  const start = Math.min(added.start, touched[0]?.start ?? added.start);
  const end = Math.max(added.end, touched.at(-1)?.end ?? added.end);
  return [...before, { start, end }, ...behind];
}

/** What CRYPTO frames carry, in any order, with holes and repeats; of what is sent twice the last counts. */
export class CryptoStream {
  #bytes = new Uint8Array(FIRST_CAPACITY);
  #pieces: readonly Piece[] = [];

  /** False where it cannot be part of a ClientHello that we read. */
  add(offset: number, data: Uint8Array): boolean {
    const end = offset + data.length;
    if (end > MAX_QUIC_HELLO_BYTES) return false;
    if (data.length === 0) return true;
    if (end > this.#bytes.length) {
      let capacity = this.#bytes.length;
      while (capacity < end) capacity *= 2;
      const larger = new Uint8Array(capacity);
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
    this.#bytes.set(data, offset);
    this.#pieces = withPiece(this.#pieces, { start: offset, end });
    return this.#pieces.length <= MAX_PIECES;
  }

  /** What the bytes without a hole before them say; undefined while the message is not whole. */
  read(): ServerNameAnswer | undefined {
    const [first] = this.#pieces;
    const there = first?.start === 0 ? first.end : 0;
    if (there > 0 && this.#bytes[0] !== CLIENT_HELLO)
      return { kind: 'malformed', reason: 'the first handshake message is not a ClientHello' };
    if (there < HEADER_BYTES) return undefined;
    const whole = HEADER_BYTES + ((this.#bytes[1]! << 16) | (this.#bytes[2]! << 8) | this.#bytes[3]!);
    if (whole > MAX_QUIC_HELLO_BYTES) return { kind: 'malformed', reason: 'the ClientHello is too long' };
    return there < whole ? undefined : findServerName(this.#bytes.subarray(HEADER_BYTES, whole));
  }
}
