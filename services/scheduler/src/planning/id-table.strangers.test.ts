import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addressKeyOf } from './address-key.ts';
import { IdTable, type Linked } from './id-table.ts';

const COUNT = 5_000;
const REST = '0'.repeat(53);

/** Counts how often a search looks at it. */
class Counted implements Linked<Counted> {
  static reads = 0;
  readonly #id: string;
  next: Counted | undefined;
  mayBeAlike = false;

  constructor(id: string) {
    this.#id = id;
  }

  get instanceId(): string {
    Counted.reads++;
    return this.#id;
  }
}

/** 2^28 hashes each, which is nothing to whoever wants them. */
const digits = (n: number, length: number) => n.toString(16).padStart(length, '0');
const CHOSEN: Readonly<Record<string, (n: number) => string>> = {
  'begin alike': (n) => `0badbad${digits(n, 4)}${REST}`,
  'are alike in the last digits of their addresses': (n) => `${digits(n, 4)}0badbad${REST}`,
  'are alike between these': (n) => `${digits(n >> 8, 2)}0badbad${digits(n & 255, 2)}${REST}`,
};

for (const [how, idOf] of Object.entries(CHOSEN))
  test(`ids that are chosen so that they ${how} make no search long`, () => {
    const ids = Array.from({ length: COUNT }, (_, n) => idOf(n));
    const table = new IdTable<Counted>();
    const items = ids.map((id) => new Counted(id));
    for (const item of items) table.add(item);
    Counted.reads = 0;
    for (const [n, id] of ids.entries()) assert.equal(table.get(id), items[n]);
    for (const item of items.toReversed()) table.delete(item);
    assert.ok(Counted.reads < 3 * COUNT, `${Counted.reads} looks for ${COUNT} searches and removals`);
    // The rows of a node, told apart by the last bits, are as short.
    const inRow = Map.groupBy(ids, (id) => addressKeyOf(id) & 15);
    for (const { length } of inRow.values())
      assert.ok(length < COUNT / 4, `${length} of ${COUNT} in one row`);
  });
