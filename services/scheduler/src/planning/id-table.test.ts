import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sha256Hex } from '@skerry/protocol';
import { IdTable, type Linked } from './id-table.ts';

interface Item extends Linked<Item> {
  readonly instanceId: string;
}

const itemOf = (instanceId: string): Item => ({ instanceId, next: undefined, mayBeAlike: false });
/** Another id with the same key: only what stands behind the digits of an address differs. */
const likeOf = (id: string, n: number) => `${id.slice(0, 11)}${String(n).padStart(53, '0')}`;

test('instances are found by their ids and go in any order, also where the first digits of many are the same', () => {
  const table = new IdTable<Item>();
  const held = new Map<string, Item>();
  for (let n = 0; n < 2_000; n++) {
    const id = sha256Hex(`instance ${n}`);
    for (const one of n % 7 === 0 ? [id, likeOf(id, 1), likeOf(id, 2), likeOf(id, 3)] : [id]) {
      const item = itemOf(one);
      table.add(item);
      held.set(one, item);
    }
  }
  const ids = [...held.keys()];
  for (let n = 0; n < ids.length; n += 3) {
    const id = ids[(n * 7_919) % ids.length]!;
    const item = held.get(id);
    if (!item) continue;
    table.delete(item);
    held.delete(id);
  }
  assert.equal(table.size, held.size);
  assert.deepEqual([...table.ids()].sort(), [...held.keys()].sort());
  for (const id of ids) assert.equal(table.get(id), held.get(id));
});

test('two that begin alike know of it, whichever came first, and one by itself does not', () => {
  const id = sha256Hex('instance');
  const table = new IdTable<Item>();
  const [first, second, other] = [itemOf(id), itemOf(likeOf(id, 1)), itemOf(sha256Hex('another'))];
  for (const item of [first, other, second]) table.add(item);
  assert.deepEqual(
    [first, second, other].map(({ mayBeAlike }) => mayBeAlike),
    [true, true, false],
  );
  table.delete(second);
  assert.equal(table.get(second.instanceId), undefined);
  assert.equal(table.get(id), first);
});
