import { addressKeyOf, ID_DIGITS_IN_ADDRESS } from './address-key.ts';

const isAlike = (a: string, b: string) =>
  a === b || a.slice(0, ID_DIGITS_IN_ADDRESS) === b.slice(0, ID_DIGITS_IN_ADDRESS);

/** Keys that a row has on average at most: so many side by side are looked through faster than a map of them is asked. */
const ROW_MAX = 256;

/** Keys, and beside each its id. */
interface Row {
  readonly keys: number[];
  readonly ids: string[];
}

const createRow = (): Row => ({ keys: [], ids: [] });

function placeIn({ keys, ids }: Row, key: number, is: (id: string) => boolean): number {
  let place = keys.indexOf(key);
  while (place !== -1 && !is(ids[place]!)) place = keys.indexOf(key, place + 1);
  return place;
}

/** The instances of one node, found by what of their ids is in their addresses. Nearly every key has one of them. */
export class Holdings {
  /** As many as a power of two; the last digits of a key say in which it is. */
  #rows: readonly Row[] = [createRow()];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  has(instanceId: string): boolean {
    const key = addressKeyOf(instanceId);
    return placeIn(this.#rowOf(key), key, (one) => one === instanceId) !== -1;
  }

  /** Whether one whose id begins alike is held: it has the address. */
  hasAddressOf(instanceId: string): boolean {
    const key = addressKeyOf(instanceId);
    return placeIn(this.#rowOf(key), key, (one) => isAlike(one, instanceId)) !== -1;
  }

  /** @param instanceId of none that is held */
  add(instanceId: string): void {
    if (this.#size >= ROW_MAX * this.#rows.length) this.#spread();
    const key = addressKeyOf(instanceId);
    const { keys, ids } = this.#rowOf(key);
    keys.push(key);
    ids.push(instanceId);
    this.#size++;
  }

  delete(instanceId: string): void {
    const key = addressKeyOf(instanceId);
    const row = this.#rowOf(key);
    const place = placeIn(row, key, (one) => one === instanceId);
    if (place === -1) return;
    // The last one takes its place.
    const [lastKey, lastId] = [row.keys.pop()!, row.ids.pop()!];
    if (place < row.ids.length) {
      row.keys[place] = lastKey;
      row.ids[place] = lastId;
    }
    this.#size--;
  }

  *[Symbol.iterator](): Generator<string> {
    for (const { ids } of this.#rows) yield* ids;
  }

  #rowOf(key: number): Row {
    return this.#rows[key & (this.#rows.length - 1)]!;
  }

  #spread(): void {
    const all = [...this];
    this.#rows = Array.from({ length: 2 * this.#rows.length }, createRow);
    this.#size = 0;
    for (const instanceId of all) this.add(instanceId);
  }
}
