/** What is in a heap. Only the heap writes either. */
export interface Ranked {
  /** As many numbers for each of a heap. */
  rank: readonly number[];
  /** Where it is in the heap; -1 where it is in none. */
  place: number;
}

/** Whether the first number that differs is smaller. */
function isLess(a: readonly number[], b: readonly number[]): boolean {
  const index = a.findIndex((number, place) => number !== b[place]);
  return index >= 0 && a[index]! < b[index]!;
}

/** Which of many has the lowest rank: a binary heap that knows where each is, so that a rank may change at any time. */
export class RankedHeap<T extends Ranked> {
  readonly #all: T[] = [];

  get first(): T | undefined {
    return this.#all[0];
  }

  /** Adds one, or moves it to where its new rank belongs. */
  put(one: T, rank: readonly number[]): void {
    if (one.place < 0) {
      one.place = this.#all.length;
      this.#all.push(one);
    }
    one.rank = rank;
    this.#settle(one);
  }

  /** Harmless where it is not there. */
  remove(one: T): void {
    if (one.place < 0) return;
    const last = this.#all.pop()!;
    if (last !== one) {
      this.#set(last, one.place);
      this.#settle(last);
    }
    one.place = -1;
  }

  #settle(one: T): void {
    for (;;) {
      const above = this.#all[(one.place - 1) >> 1];
      if (one.place === 0 || !isLess(one.rank, above!.rank)) break;
      this.#swap(one, above!);
    }
    for (;;) {
      const [left, right] = [this.#all[2 * one.place + 1], this.#all[2 * one.place + 2]];
      const below = left && right && isLess(right.rank, left.rank) ? right : left;
      if (!below || !isLess(below.rank, one.rank)) return;
      this.#swap(one, below);
    }
  }

  #swap(one: T, other: T): void {
    const { place } = one;
    this.#set(one, other.place);
    this.#set(other, place);
  }

  #set(one: T, place: number): void {
    this.#all[place] = one;
    one.place = place;
  }
}
