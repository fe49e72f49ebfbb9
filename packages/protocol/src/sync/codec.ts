import { AppError } from '../errors.ts';
import { bytesToHex, hexToBytes } from '../hex.ts';
import {
  type Bound,
  compareBounds,
  END,
  SHORT_ID_BYTES,
  type ShortKey,
  START,
  SYNC_ID_BYTES,
} from './key.ts';
import {
  ANSWER_KEYS_MAX,
  ANSWER_RANGES_MAX,
  FINGERPRINT_BYTES,
  QUESTION_RANGES_MAX,
  type Range,
} from './ranges.ts';

/**
 * Bodies between nodes. A body is a version byte, then records to its end. Ranges: `upper bound, kind, payload`, each
 * beginning where the one before ended. Numbers are big-endian. Keys: 8 bytes of time, 20 of id.
 */

const VERSION = 1;
const KINDS = { skip: 0, fingerprint: 1, list: 2, keys: 3 } as const;
const KEY_BYTES = 8 + SHORT_ID_BYTES;

/** A question or an answer is never larger. */
export const RANGES_BODY_BYTES = 1024 * 1024;
/** Keys in one request for messages. */
export const WANTED_KEYS_MAX = 1_000;
export const WANTED_BODY_BYTES = 1 + WANTED_KEYS_MAX * KEY_BYTES;

const malformed = (what: string) =>
  new AppError('INVALID_PARAMETERS', `the body is no list of ranges or keys: ${what}`);

class Out {
  #bytes = new Uint8Array(4_096);
  #view = new DataView(this.#bytes.buffer);
  #at = 0;

  #room(count: number): void {
    if (this.#at + count <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(this.#bytes.length * 2, this.#at + count));
    grown.set(this.#bytes);
    this.#bytes = grown;
    this.#view = new DataView(grown.buffer);
  }

  byte(value: number): void {
    this.#room(1);
    this.#bytes[this.#at++] = value;
  }

  short(value: number): void {
    this.#room(2);
    this.#view.setUint16(this.#at, value);
    this.#at += 2;
  }

  time(value: number): void {
    this.#room(8);
    this.#view.setFloat64(this.#at, value);
    this.#at += 8;
  }

  raw(bytes: Uint8Array): void {
    this.#room(bytes.length);
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  bound({ time, prefix }: Bound): void {
    this.time(time);
    this.byte(prefix.length);
    this.raw(prefix);
  }

  key({ time, id }: ShortKey): void {
    this.time(time);
    this.raw(hexToBytes(id)!);
  }

  get done(): Uint8Array {
    return this.#bytes.subarray(0, this.#at);
  }
}

class In {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    if (bytes.length === 0 || this.byte() !== VERSION) throw malformed('unknown version');
  }

  get isDone(): boolean {
    return this.#at === this.#bytes.length;
  }

  #take(count: number): number {
    const at = this.#at;
    if (at + count > this.#bytes.length) throw malformed('it breaks off');
    this.#at += count;
    return at;
  }

  byte(): number {
    return this.#bytes[this.#take(1)]!;
  }

  short(): number {
    return this.#view.getUint16(this.#take(2));
  }

  time(): number {
    const time = this.#view.getFloat64(this.#take(8));
    if (Number.isNaN(time)) throw malformed('a time is no number');
    // There is one zero.
    return time === 0 ? 0 : time;
  }

  raw(count: number): Uint8Array {
    const at = this.#take(count);
    return this.#bytes.slice(at, at + count);
  }

  bound(): Bound {
    const time = this.time();
    const length = this.byte();
    if (length > SYNC_ID_BYTES) throw malformed('a bound is longer than an id');
    return { time, prefix: this.raw(length) };
  }

  key(): ShortKey {
    const time = this.time();
    if (!Number.isFinite(time)) throw malformed('a time is not finite');
    return { time, id: bytesToHex(this.raw(SHORT_ID_BYTES)) };
  }
}

/** @param ranges in order, none overlapping another */
export function encodeRanges(ranges: readonly Range[]): Uint8Array {
  const out = new Out();
  out.byte(VERSION);
  let last: Bound = START;
  for (const range of ranges) {
    if (compareBounds(range.lower, last) !== 0) {
      out.bound(range.lower);
      out.byte(KINDS.skip);
    }
    out.bound(range.upper);
    out.byte(KINDS[range.kind]);
    if (range.kind === 'fingerprint') out.raw(range.fingerprint);
    if (range.kind === 'keys') {
      out.short(range.keys.length);
      for (const key of range.keys) out.key(key);
    }
    last = range.upper;
  }
  return out.done;
}

function readRange(body: In, kind: number, lower: Bound, upper: Bound): Range | undefined {
  if (kind === KINDS.skip) return undefined;
  if (kind === KINDS.fingerprint)
    return { kind: 'fingerprint', lower, upper, fingerprint: body.raw(FINGERPRINT_BYTES) };
  if (kind === KINDS.list) return { kind: 'list', lower, upper };
  if (kind !== KINDS.keys) throw malformed('unknown kind of range');
  const keys = Array.from({ length: body.short() }, () => body.key());
  return { kind: 'keys', lower, upper, keys };
}

/** @throws AppError INVALID_PARAMETERS */
function decodeRanges(bytes: Uint8Array, rangesMax: number, keysMax: number): Range[] {
  if (bytes.length > RANGES_BODY_BYTES) throw malformed('it is too long');
  const body = new In(bytes);
  const ranges: Range[] = [];
  let last: Bound = START;
  let keys = 0;
  while (!body.isDone) {
    const upper = body.bound();
    if (compareBounds(upper, last) < 0 || compareBounds(upper, END) > 0)
      throw malformed('bounds are out of order');
    const range = readRange(body, body.byte(), last, upper);
    last = upper;
    if (!range) continue;
    ranges.push(range);
    if (range.kind === 'keys') keys += range.keys.length;
    if (ranges.length > rangesMax || keys > keysMax) throw malformed('it has too many ranges or keys');
  }
  return ranges;
}

/** A question has no keys. @throws AppError INVALID_PARAMETERS */
export const decodeQuestion = (bytes: Uint8Array) => decodeRanges(bytes, QUESTION_RANGES_MAX, 0);

/** @throws AppError INVALID_PARAMETERS */
export const decodeAnswer = (bytes: Uint8Array) =>
  decodeRanges(bytes, ANSWER_RANGES_MAX + QUESTION_RANGES_MAX, ANSWER_KEYS_MAX);

export function encodeKeys(keys: readonly ShortKey[]): Uint8Array {
  const out = new Out();
  out.byte(VERSION);
  for (const key of keys) out.key(key);
  return out.done;
}

/** @throws AppError INVALID_PARAMETERS */
export function decodeKeys(bytes: Uint8Array): ShortKey[] {
  if (bytes.length > WANTED_BODY_BYTES) throw malformed(`it has more than ${WANTED_KEYS_MAX} keys`);
  const body = new In(bytes);
  const keys: ShortKey[] = [];
  while (!body.isDone) keys.push(body.key());
  return keys;
}

/** A bound as text, for queries: 16 hexadecimal digits of time, then the prefix. */
export function formatBound({ time, prefix }: Bound): string {
  const out = new Out();
  out.time(time);
  out.raw(prefix);
  return bytesToHex(out.done);
}

/** @throws AppError INVALID_CURSOR */
export function parseBound(text: string): Bound {
  const bytes = /^[0-9a-f]{16,88}$/.test(text) ? hexToBytes(text) : undefined;
  if (!bytes)
    throw new AppError('INVALID_CURSOR', 'a place in the order of messages is 16 to 88 hexadecimal digits');
  const time = new DataView(bytes.buffer).getFloat64(0);
  if (Number.isNaN(time)) throw new AppError('INVALID_CURSOR', 'its time is not a number');
  return { time, prefix: bytes.slice(8) };
}
