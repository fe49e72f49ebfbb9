/** What each of many holds, the first to come first: to find who holds most costs no look at each of them. */
export class Holders<One> {
  readonly #held = new Map<string, Set<One>>();
  /** The same, by how many they hold. */
  readonly #byCount: Set<string>[] = [new Set()];

  countOf(key: string): number {
    return this.#held.get(key)?.size ?? 0;
  }

  add(key: string, one: One): void {
    const own = this.#held.get(key) ?? new Set();
    this.#held.set(key, own.add(one));
    this.#count(key, own.size - 1, own.size);
  }

  delete(key: string, one: One): void {
    const own = this.#held.get(key);
    if (!own?.delete(one)) return;
    if (own.size === 0) this.#held.delete(key);
    this.#count(key, own.size + 1, own.size);
  }

  /** What whoever holds most holds; undefined where that is less than `least`, which is 1 or more. */
  ofMost(least: number): ReadonlySet<One> | undefined {
    const most = this.#byCount.length - 1;
    if (most < least) return undefined;
    const [first] = this.#byCount[most]!;
    return this.#held.get(first!);
  }

  #count(key: string, before: number, after: number): void {
    this.#byCount[before]!.delete(key);
    if (after > 0) {
      this.#byCount[after] ??= new Set();
      this.#byCount[after].add(key);
    }
    while (this.#byCount.length > 1 && this.#byCount.at(-1)!.size === 0) this.#byCount.pop();
  }
}
