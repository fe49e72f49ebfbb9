/** Digits of an instance's id that are in its address (docs/decisions.md 15). */
export const ID_DIGITS_IN_ADDRESS = 11;
/** The last of those make the key: 28 bits are a small integer, which a map takes without a box. */
const KEY_FROM = ID_DIGITS_IN_ADDRESS - 7;
/** Of '0', and of 'a' less ten. */
const [DIGITS_FROM, LETTERS_FROM] = [48, 87];

function keyOf(instanceId: string): number {
  let key = 0;
  for (let at = KEY_FROM; at < ID_DIGITS_IN_ADDRESS; at++) {
    const code = instanceId.charCodeAt(at);
    key = (key << 4) | (code - (code < LETTERS_FROM ? DIGITS_FROM : LETTERS_FROM));
  }
  return key;
}

const isAlike = (a: string, b: string) =>
  a === b || a.slice(0, ID_DIGITS_IN_ADDRESS) === b.slice(0, ID_DIGITS_IN_ADDRESS);

/** The instances of one node, found by what of their ids is in their addresses. Nearly every key has one of them. */
export class Holdings {
  readonly #byKey = new Map<number, string | string[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  has(instanceId: string): boolean {
    const found = this.#byKey.get(keyOf(instanceId));
    return typeof found === 'string' ? found === instanceId : (found?.includes(instanceId) ?? false);
  }

  /** Whether one whose id begins alike is held: it has the address. */
  hasAddressOf(instanceId: string): boolean {
    const found = this.#byKey.get(keyOf(instanceId));
    if (found === undefined) return false;
    return typeof found === 'string'
      ? isAlike(found, instanceId)
      : found.some((one) => isAlike(one, instanceId));
  }

  /** @param instanceId of none that is held */
  add(instanceId: string): void {
    const key = keyOf(instanceId);
    const found = this.#byKey.get(key);
    this.#byKey.set(key, found === undefined ? instanceId : [found, instanceId].flat());
    this.#size++;
  }

  delete(instanceId: string): void {
    if (!this.has(instanceId)) return;
    const key = keyOf(instanceId);
    const left = [this.#byKey.get(key)!].flat().filter((one) => one !== instanceId);
    if (left.length === 0) this.#byKey.delete(key);
    else this.#byKey.set(key, left.length === 1 ? left[0]! : left);
    this.#size--;
  }

  *[Symbol.iterator](): Generator<string> {
    for (const found of this.#byKey.values())
      if (typeof found === 'string') yield found;
      else yield* found;
  }
}
