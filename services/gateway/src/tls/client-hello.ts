import { findServerName, type ServerNameAnswer } from './server-name.ts';

/**
 * What the bytes of a connection say so far. `server_name` is in lower case without a trailing dot. Once the answer is not
 * `need_more`, no further byte changes it, and it does not depend on how the bytes were cut into pieces.
 */
export type HelloAnswer = { readonly kind: 'need_more' } | { readonly kind: 'not_tls' } | ServerNameAnswer;

/** A ClientHello with its header. Post-quantum key shares and session tickets stay well below. */
export const MAX_CLIENT_HELLO_BYTES = 32 * 1024;
/** The same with its record headers: a hello may be cut into many small records. */
export const MAX_HELLO_WIRE_BYTES = 64 * 1024;

const RECORD_HEADER_BYTES = 5;
const RECORD_TYPE_HANDSHAKE = 22;
const TLS_MAJOR_VERSION = 3;
/** RFC 8446 §5.1: a plaintext record carries at most 2^14 bytes. */
const MAX_RECORD_BYTES = 2 ** 14;
const MESSAGE_HEADER_BYTES = 4;
const MESSAGE_TYPE_CLIENT_HELLO = 1;

const NEED_MORE: HelloAnswer = { kind: 'need_more' };
const NOT_TLS: HelloAnswer = { kind: 'not_tls' };
const malformed = (reason: string): HelloAnswer => ({ kind: 'malformed', reason });

/** A record header as far as it is there; undefined where nothing is wrong with it. */
function refuseRecordHeader(header: Uint8Array, isFirst: boolean): HelloAnswer | undefined {
  const wrongStart =
    (header.length > 0 && header[0] !== RECORD_TYPE_HANDSHAKE) ||
    (header.length > 1 && header[1] !== TLS_MAJOR_VERSION);
  if (wrongStart)
    return isFirst ? NOT_TLS : malformed('the ClientHello is interrupted by another kind of record');
  if (header.length < RECORD_HEADER_BYTES) return undefined;
  const length = recordLength(header);
  if (length === 0) return malformed('a handshake record is empty');
  if (length > MAX_RECORD_BYTES) return malformed('a record is longer than 2^14 bytes');
  return undefined;
}

const recordLength = (header: Uint8Array) => (header[3]! << 8) | header[4]!;

/** The first `length` payload bytes of the records at the start of `wire`, which holds them all. */
function joinRecords(wire: Uint8Array, length: number): Uint8Array {
  const first = recordLength(wire);
  if (first >= length) return wire.subarray(RECORD_HEADER_BYTES, RECORD_HEADER_BYTES + length);
  const joined = new Uint8Array(length);
  let filled = 0;
  for (let at = 0; filled < length; ) {
    const end = at + RECORD_HEADER_BYTES + recordLength(wire.subarray(at));
    const part = wire.subarray(at + RECORD_HEADER_BYTES, Math.min(end, wire.length));
    joined.set(part.subarray(0, length - filled), filled);
    filled += part.length;
    at = end;
  }
  return joined;
}

/**
 * Reads the server name of a TLS ClientHello (RFC 8446 §4.1.2 and §5.1, RFC 6066 §3) from bytes as they arrive: pure,
 * bounds-checked, never throws, work in proportion to the bytes given. Nothing is consumed: `bytes` is all that came, to be
 * passed on untouched.
 */
export class ClientHelloReader {
  #wire: Uint8Array = new Uint8Array(0);
  #length = 0;
  /** Where reading goes on in `#wire`, and where the payload of the current record ends. */
  #at = 0;
  #recordEnd = 0;
  /** Handshake bytes seen, and the message's whole length once its header is there. */
  #messageBytes = 0;
  #messageLength = 0;
  #answer: HelloAnswer = NEED_MORE;

  /** All bytes pushed so far. */
  get bytes(): Uint8Array {
    return this.#wire.subarray(0, this.#length);
  }

  push(chunk: Uint8Array): HelloAnswer {
    this.#append(chunk);
    if (this.#answer.kind === 'need_more') this.#answer = this.#read();
    return this.#answer;
  }

  #append(chunk: Uint8Array): void {
    const length = this.#length + chunk.length;
    if (this.#length === 0) {
      // Nearly always the whole hello is in the first segment: no copy.
      this.#wire = chunk;
    } else if (length > this.#wire.length) {
      const larger = new Uint8Array(Math.max(length, this.#wire.length * 2));
      larger.set(this.bytes);
      larger.set(chunk, this.#length);
      this.#wire = larger;
    } else {
      this.#wire.set(chunk, this.#length);
    }
    this.#length = length;
  }

  #read(): HelloAnswer {
    const available = Math.min(this.#length, MAX_HELLO_WIRE_BYTES);
    while (this.#at < available || this.#at === this.#recordEnd) {
      const answer =
        this.#at === this.#recordEnd ? this.#readRecordHeader(available) : this.#readPayload(available);
      if (answer) return answer;
    }
    return this.#needMore(available);
  }

  #needMore(available: number): HelloAnswer {
    return available < MAX_HELLO_WIRE_BYTES ? NEED_MORE : malformed('the ClientHello is too long');
  }

  #readRecordHeader(available: number): HelloAnswer | undefined {
    const header = this.#wire.subarray(this.#at, Math.min(available, this.#at + RECORD_HEADER_BYTES));
    const refusal = refuseRecordHeader(header, this.#at === 0);
    if (refusal) return refusal;
    if (header.length < RECORD_HEADER_BYTES) return this.#needMore(available);
    this.#at += RECORD_HEADER_BYTES;
    this.#recordEnd = this.#at + recordLength(header);
    return undefined;
  }

  #readPayload(available: number): HelloAnswer | undefined {
    const end = Math.min(this.#recordEnd, available);
    while (this.#messageBytes < MESSAGE_HEADER_BYTES && this.#at < end) {
      const byte = this.#wire[this.#at++]!;
      if (this.#messageBytes++ === 0) {
        if (byte !== MESSAGE_TYPE_CLIENT_HELLO)
          return malformed('the first handshake message is not a ClientHello');
      } else {
        this.#messageLength = (this.#messageLength << 8) | byte;
      }
    }
    if (this.#messageBytes < MESSAGE_HEADER_BYTES) return undefined;
    const whole = MESSAGE_HEADER_BYTES + this.#messageLength;
    if (whole > MAX_CLIENT_HELLO_BYTES) return malformed('the ClientHello is too long');
    this.#messageBytes += end - this.#at;
    this.#at = end;
    if (this.#messageBytes < whole) return undefined;
    return findServerName(joinRecords(this.bytes, whole).subarray(MESSAGE_HEADER_BYTES));
  }
}
