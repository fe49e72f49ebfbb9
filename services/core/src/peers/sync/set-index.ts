import {
  type Bound,
  compareBytes,
  compareKeys,
  hexToBytes,
  type OrderedKeys,
  type ShortKey,
  SYNC_ID_BYTES,
  type SyncKey,
  sha256Hex,
  shortKeyOf,
} from '@skerry/protocol';

const WORDS = SYNC_ID_BYTES / 4;
const WORD = 2 ** 32;
/** Keys in one chunk at most; a full one becomes two. Larger ones make insertion slower, smaller ones the list longer. */
const CHUNK_KEYS = 512;
/** Chunks that are built at once are left some room. */
const BUILT_KEYS = 384;

/** Of each chunk: how many keys are before it, and their sum. */
interface Before {
  readonly counts: Float64Array;
  readonly sums: Float64Array;
}

/** A run of keys in their order. Times and ids lie in flat arrays: 44 bytes a key, and no object each. */
class Chunk {
  readonly times = new Float64Array(CHUNK_KEYS);
  readonly ids = new Uint8Array(CHUNK_KEYS * SYNC_ID_BYTES);
  readonly #view = new DataView(this.ids.buffer);
  /** The ids' sum, as words without carries. */
  readonly sums = new Float64Array(WORDS);
  length = 0;

  keyAt(at: number): SyncKey {
    return { time: this.times[at]!, id: this.ids.subarray(at * SYNC_ID_BYTES, (at + 1) * SYNC_ID_BYTES) };
  }

  add(sums: Float64Array, from: number, to: number, sign: 1 | -1): void {
    const view = this.#view;
    // Word by word, so that each sum stays in a register.
    for (let word = 0; word < WORDS; word++) {
      let sum = 0;
      const end = to * SYNC_ID_BYTES + word * 4;
      for (let place = from * SYNC_ID_BYTES + word * 4; place < end; place += SYNC_ID_BYTES)
        sum += view.getUint32(place);
      sums[word]! += sign * sum;
    }
  }

  /** Adds the sum of the keys before `at`, from whichever end is nearer. */
  addBefore(sums: Float64Array, at: number, sign: 1 | -1): void {
    if (at <= this.length / 2) {
      this.add(sums, 0, at, sign);
      return;
    }
    for (let word = 0; word < WORDS; word++) sums[word]! += sign * this.sums[word]!;
    this.add(sums, at, this.length, sign === 1 ? -1 : 1);
  }

  /** Below 0: the key there comes before (time, prefix and zeros). */
  compare(at: number, time: number, prefix: Uint8Array): number {
    const own = this.times[at]!;
    if (own !== time) return own < time ? -1 : 1;
    const start = at * SYNC_ID_BYTES;
    for (let byte = 0; byte < prefix.length; byte++) {
      const difference = this.ids[start + byte]! - prefix[byte]!;
      if (difference !== 0) return difference;
    }
    return 0;
  }

  /** The place where the key is or would be. */
  placeOf({ time, id }: SyncKey): number {
    let [low, high] = [0, this.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.compare(middle, time, id) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  isAt(at: number, { time, id }: SyncKey): boolean {
    return at < this.length && this.compare(at, time, id) === 0;
  }

  insert(at: number, { time, id }: SyncKey): void {
    this.times.copyWithin(at + 1, at, this.length);
    this.ids.copyWithin((at + 1) * SYNC_ID_BYTES, at * SYNC_ID_BYTES, this.length * SYNC_ID_BYTES);
    this.times[at] = time;
    this.ids.set(id, at * SYNC_ID_BYTES);
    this.length++;
    this.add(this.sums, at, at + 1, 1);
  }

  remove(at: number): void {
    this.add(this.sums, at, at + 1, -1);
    this.times.copyWithin(at, at + 1, this.length);
    this.ids.copyWithin(at * SYNC_ID_BYTES, (at + 1) * SYNC_ID_BYTES, this.length * SYNC_ID_BYTES);
    this.length--;
  }

  /** The upper half, as a chunk of its own. */
  split(): Chunk {
    const upper = new Chunk();
    const half = this.length >> 1;
    upper.times.set(this.times.subarray(half, this.length));
    upper.ids.set(this.ids.subarray(half * SYNC_ID_BYTES, this.length * SYNC_ID_BYTES));
    upper.length = this.length - half;
    upper.add(upper.sums, 0, upper.length, 1);
    this.length = half;
    for (let word = 0; word < WORDS; word++) this.sums[word]! -= upper.sums[word]!;
    return upper;
  }
}

/** The first of `count` that is not before, where those before come first. */
function search(count: number, isBeforeAt: (at: number) => boolean): number {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isBeforeAt(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The sum modulo 2^288 as bytes, most significant first. */
function sumBytes(sums: Float64Array): Uint8Array {
  const bytes = new Uint8Array(SYNC_ID_BYTES + 8);
  const view = new DataView(bytes.buffer);
  let carry = 0;
  for (let word = WORDS - 1; word >= 0; word--) {
    const value = sums[word]! + carry;
    carry = Math.floor(value / WORD);
    view.setUint32(word * 4, value - carry * WORD);
  }
  return bytes;
}

/**
 * The keys of all messages that the node has, in memory, in their order. A fingerprint is the first 16 bytes of the
 * SHA-256 over the sum of the ids and their number: sums are kept for each chunk, so that a range of any size costs two
 * partial chunks. Adding and removing move half a chunk.
 */
export class SetIndex implements OrderedKeys {
  #chunks: Chunk[] = [];
  #size = 0;
  /** Keys and sums before each chunk; made when somebody asks, since most changes come in crowds. */
  #before: Before | undefined;

  /** @param keys in any order, each once */
  static of(keys: readonly SyncKey[]): SetIndex {
    const sorted = keys.toSorted(compareKeys);
    const index = new SetIndex();
    index.#size = sorted.length;
    for (let at = 0; at < sorted.length; at += BUILT_KEYS) {
      const chunk = new Chunk();
      for (const key of sorted.slice(at, at + BUILT_KEYS)) chunk.insert(chunk.length, key);
      index.#chunks.push(chunk);
    }
    return index;
  }

  get size(): number {
    return this.#size;
  }

  /** The chunk where the key is or would be. Written out, as Chunk.placeOf: each message that comes is looked for several times. */
  #numberOf({ time, id }: SyncKey): number {
    let [low, high] = [0, this.#chunks.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#chunks[middle]!.compare(0, time, id) <= 0) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }

  has(key: SyncKey): boolean {
    if (this.#chunks.length === 0) return false;
    const chunk = this.#chunks[this.#numberOf(key)]!;
    return chunk.isAt(chunk.placeOf(key), key);
  }

  /** @returns whether it was not there yet */
  add(key: SyncKey): boolean {
    if (this.#chunks.length === 0) this.#chunks.push(new Chunk());
    const number = this.#numberOf(key);
    const chunk = this.#chunks[number]!;
    const at = chunk.placeOf(key);
    if (chunk.isAt(at, key)) return false;
    chunk.insert(at, key);
    if (chunk.length === CHUNK_KEYS) this.#chunks.splice(number + 1, 0, chunk.split());
    this.#size++;
    this.#before = undefined;
    return true;
  }

  /** @returns whether it was there */
  remove(key: SyncKey): boolean {
    if (this.#chunks.length === 0) return false;
    const number = this.#numberOf(key);
    const chunk = this.#chunks[number]!;
    const at = chunk.placeOf(key);
    if (!chunk.isAt(at, key)) return false;
    chunk.remove(at);
    if (chunk.length === 0) this.#chunks.splice(number, 1);
    this.#size--;
    this.#before = undefined;
    return true;
  }

  #sumsBefore(): Before {
    if (this.#before) return this.#before;
    const counts = new Float64Array(this.#chunks.length + 1);
    const sums = new Float64Array((this.#chunks.length + 1) * WORDS);
    for (const [number, chunk] of this.#chunks.entries()) {
      counts[number + 1] = counts[number]! + chunk.length;
      // Each word stays below 2^32 times the number of keys: exact up to two million keys, so carries are taken along.
      let carry = 0;
      for (let word = WORDS - 1; word >= 0; word--) {
        const value = sums[number * WORDS + word]! + chunk.sums[word]! + carry;
        carry = Math.floor(value / WORD);
        sums[(number + 1) * WORDS + word] = value - carry * WORD;
      }
    }
    this.#before = { counts, sums };
    return this.#before;
  }

  rank(bound: Bound): number {
    const number =
      search(this.#chunks.length, (at) => this.#chunks[at]!.compare(0, bound.time, bound.prefix) < 0) - 1;
    if (number < 0) return 0;
    const chunk = this.#chunks[number]!;
    return (
      this.#sumsBefore().counts[number]! +
      search(chunk.length, (at) => chunk.compare(at, bound.time, bound.prefix) < 0)
    );
  }

  #at(rank: number): { number: number; at: number } {
    const { counts } = this.#sumsBefore();
    const number = Math.max(0, search(this.#chunks.length, (one) => counts[one]! <= rank) - 1);
    return { number, at: rank - counts[number]! };
  }

  keyAt(rank: number): SyncKey {
    const { number, at } = this.#at(rank);
    return this.#chunks[number]!.keyAt(at);
  }

  fingerprint(from: number, to: number): Uint8Array {
    const total = new Float64Array(WORDS);
    if (to > from) {
      const { sums } = this.#sumsBefore();
      const [start, end] = [this.#at(from), this.#at(to)];
      for (let word = 0; word < WORDS; word++)
        total[word] = sums[end.number * WORDS + word]! - sums[start.number * WORDS + word]!;
      this.#chunks[start.number]!.addBefore(total, start.at, -1);
      this.#chunks[end.number]?.addBefore(total, end.at, 1);
    }
    const bytes = sumBytes(total);
    new DataView(bytes.buffer).setFloat64(SYNC_ID_BYTES, to - from);
    return hexToBytes(sha256Hex(bytes).slice(0, 32))!;
  }

  /** The key that a short one stands for. */
  find(short: ShortKey): SyncKey | undefined {
    const rank = this.rankOf(short);
    return rank === undefined ? undefined : this.keyAt(rank);
  }

  rankOf(short: ShortKey): number | undefined {
    const prefix = hexToBytes(short.id.slice(0, 32))!;
    for (let rank = this.rank({ time: short.time, prefix }); rank < this.#size; rank++) {
      const key = this.keyAt(rank);
      if (key.time !== short.time || compareBytes(key.id.subarray(0, prefix.length), prefix) !== 0)
        return undefined;
      if (shortKeyOf(key).id === short.id) return rank;
    }
    return undefined;
  }
}
