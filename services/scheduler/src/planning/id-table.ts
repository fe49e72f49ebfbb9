import { randomInt } from 'node:crypto';

/** Digits of an id that make its key: 28 bits are a small integer, which a map takes without a box. */
export const KEY_DIGITS = 7;
const KEYS = 16 ** KEY_DIGITS;
/** Of '0', and of 'a' less ten. */
const [DIGITS_FROM, LETTERS_FROM] = [48, 87];

/** The number that some hexadecimal digits of an id are. @param at of the first one */
export function digitsOf(instanceId: string, at: number): number {
  let key = 0;
  for (let index = at; index < at + KEY_DIGITS; index++) {
    const code = instanceId.charCodeAt(index);
    key = (key << 4) | (code - (code < LETTERS_FROM ? DIGITS_FROM : LETTERS_FROM));
  }
  return key;
}

/** What the table holds. All but the id is its own. */
export interface Linked<T> {
  readonly instanceId: string;
  /** Of the same key. Nearly every key has one only. */
  next: T | undefined;
  /** Whether another one with the same first digits is or was there: of a thousand in a million one has that. */
  mayBeAlike: boolean;
}

/**
 * Instances by their ids. A map by the ids themselves reads each text again whenever it grows and at every step of a
 * search; of a million texts none is near the processor.
 */
export class IdTable<T extends Linked<T>> {
  readonly #firsts = new Map<number, T>();
  /** Ids are hashes that strangers can choose: which keys lie beside each other is nobody's to know. */
  readonly #salt = randomInt(KEYS);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(instanceId: string): T | undefined {
    let one = this.#firsts.get(this.#keyOf(instanceId));
    while (one !== undefined && one.instanceId !== instanceId) one = one.next;
    return one;
  }

  /** @param item of an id that is not there */
  add(item: T): void {
    const key = this.#keyOf(item.instanceId);
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
    const key = this.#keyOf(item.instanceId);
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

  #keyOf(instanceId: string): number {
    return digitsOf(instanceId, 0) ^ this.#salt;
  }
}
