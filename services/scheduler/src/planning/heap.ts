/**
 * A binary heap: the least by `compare` is on top. Adding and taking cost the logarithm of its size; what is added in
 * order costs nothing, neither then nor when it is taken, for it stands in a row of its own.
 */
export class Heap<T> {
  readonly #compare: (a: T, b: T) => number;
  #items: T[] = [];
  /** In order from `#head` on. */
  #row: (T | undefined)[] = [];
  #head = 0;

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare;
  }

  get size(): number {
    return this.#items.length + this.#row.length - this.#head;
  }

  get top(): T | undefined {
    return this.#isRowFirst() ? this.#row[this.#head] : this.#items[0];
  }

  push(item: T): void {
    if (this.#head === this.#row.length || this.#compare(this.#row.at(-1)!, item) <= 0) {
      this.#row.push(item);
      return;
    }
    this.#items.push(item);
    this.#rise(this.#items.length - 1);
  }

  pop(): T | undefined {
    if (this.#isRowFirst()) return this.#shift();
    const [top] = this.#items;
    const last = this.#items.pop();
    if (last !== undefined && this.#items.length > 0) {
      this.#items[0] = last;
      this.#sink(0);
    }
    return top;
  }

  /** Drops what no longer counts. */
  keepOnly(counts: (item: T) => boolean): void {
    this.#row = [...this].filter(counts).sort(this.#compare);
    this.#head = 0;
    this.#items = [];
  }

  /** In no particular order. */
  *[Symbol.iterator](): Generator<T> {
    yield* this.#items;
    for (let at = this.#head; at < this.#row.length; at++) yield this.#row[at]!;
  }

  #isRowFirst(): boolean {
    if (this.#head === this.#row.length) return false;
    return this.#items.length === 0 || this.#compare(this.#row[this.#head]!, this.#items[0]!) <= 0;
  }

  #shift(): T {
    const first = this.#row[this.#head]!;
    this.#row[this.#head++] = undefined;
    // What was taken makes room once it is the greater part.
    if (2 * this.#head >= this.#row.length) {
      this.#row.splice(0, this.#head);
      this.#head = 0;
    }
    return first;
  }

  #rise(from: number): void {
    const items = this.#items;
    const item = items[from]!;
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.#compare(item, items[parent]!) >= 0) break;
      items[at] = items[parent]!;
      at = parent;
    }
    items[at] = item;
  }

  #sink(from: number): void {
    const items = this.#items;
    const item = items[from]!;
    let at = from;
    for (let child = 2 * at + 1; child < items.length; child = 2 * at + 1) {
      if (child + 1 < items.length && this.#compare(items[child + 1]!, items[child]!) < 0) child++;
      if (this.#compare(items[child]!, item) >= 0) break;
      items[at] = items[child]!;
      at = child;
    }
    items[at] = item;
  }
}
