import { addressKeyOf } from './address-key.ts';

/** What the table holds. All but the id is its own. */
export interface Linked<T> {
  readonly instanceId: string;
  /** Of the same key. Nearly every key has one only. */
  next: T | undefined;
  /** Whether another one of the same key is or was there: some thousands in a million have that. */
  mayBeAlike: boolean;
}

/**
 * Instances by their ids. A map by the ids themselves reads each text again whenever it grows and at every step of a
 * search; of a million texts none is near the processor.
 */
export class IdTable<T extends Linked<T>> {
  readonly #firsts = new Map<number, T>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(instanceId: string): T | undefined {
    let one = this.#firsts.get(addressKeyOf(instanceId));
    while (one !== undefined && one.instanceId !== instanceId) one = one.next;
    return one;
  }

  /** @param item of an id that is not there */
  add(item: T): void {
    const key = addressKeyOf(item.instanceId);
    const first = this.#firsts.get(key);
    item.next = first;
    if (first !== undefined) {
      first.mayBeAlike = true;
      item.mayBeAlike = true;
    }
    this.#firsts.set(key, item);
    this.#size++;
  }

  /** @param item that is there */
  delete(item: T): void {
    const key = addressKeyOf(item.instanceId);
    const first = this.#firsts.get(key)!;
    this.#size--;
    if (first !== item) {
      let before = first;
      while (before.next !== item) before = before.next!;
      before.next = item.next;
    } else if (item.next === undefined) this.#firsts.delete(key);
    else this.#firsts.set(key, item.next);
  }

  *ids(): Generator<string> {
    for (const first of this.#firsts.values())
      for (let one: T | undefined = first; one !== undefined; one = one.next) yield one.instanceId;
  }
}
