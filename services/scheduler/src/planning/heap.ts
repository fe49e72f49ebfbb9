/** A binary heap: the least by `compare` is on top. Adding and taking cost the logarithm of its size. */
export class Heap<T> {
  readonly #compare: (a: T, b: T) => number;
  #items: T[] = [];

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare;
  }

  get size(): number {
    return this.#items.length;
  }

  get top(): T | undefined {
    return this.#items[0];
  }

  push(item: T): void {
    this.#items.push(item);
    this.#rise(this.#items.length - 1);
  }

  pop(): T | undefined {
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
    this.#items = this.#items.filter(counts).sort(this.#compare);
  }

  /** In no particular order. */
  [Symbol.iterator](): Iterator<T> {
    return this.#items[Symbol.iterator]();
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
