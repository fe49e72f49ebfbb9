import assert from 'node:assert/strict';
import { test } from 'node:test';
import { instanceAddress, sha256Hex } from '@skerry/protocol';
import { addressKeyOf } from './address-key.ts';
import { Holdings } from './holdings.ts';
import { addressOn, headOf, type NodeLoad } from './load.ts';

const idOf = (n: number) => sha256Hex(`instance ${n}`);
/** The same address, and another id. */
const twinOf = (id: string) => `${id.slice(0, 11)}${'0'.repeat(53)}`;

/** Ids of the same key as an earlier one, and of another address: some twenty, as keys are chosen. */
function listNeighbours(): string[][] {
  const ids = Array.from({ length: 100_000 }, (_, n) => idOf(n));
  return [...Map.groupBy(ids, addressKeyOf).values()].filter(({ length }) => length > 1);
}

test('what a node holds is found, however much that is, beside others of the same key and address', () => {
  const holdings = new Holdings();
  const neighbours = listNeighbours();
  const held = new Set<string>();
  const hold = (id: string) => {
    if (held.has(id)) return;
    holdings.add(id);
    held.add(id);
  };
  for (let n = 0; n < 3_000; n++) {
    const id = idOf(n);
    hold(id);
    if (n % 10 === 0) for (const one of [twinOf(id), ...(neighbours[n / 10]?.slice(1) ?? [])]) hold(one);
    if (n % 3 === 0) {
      const gone = idOf(n >> 1);
      holdings.delete(gone);
      holdings.delete(gone);
      held.delete(gone);
    }
  }
  assert.equal(holdings.size, held.size);
  assert.deepEqual([...holdings].sort(), [...held].sort());
  const heads = new Set([...held].map((id) => id.slice(0, 11)));
  const asked = Array.from({ length: 4_000 }, (_, n) => [idOf(n), twinOf(idOf(n))]);
  for (const id of [...asked, ...neighbours].flat()) {
    assert.equal(holdings.has(id), held.has(id));
    assert.equal(holdings.hasAddressOf(id), heads.has(id.slice(0, 11)));
  }
});

test('the address on a node is the one that the protocol computes, also where groups begin with zeros', () => {
  const prefix = '2001:db8:0:7::/64';
  const node = { ipv6Prefix: prefix };
  const load = { node, addressHead: headOf(node as NodeLoad['node']) } as NodeLoad;
  const heads = ['0000', '0001', '0a00', 'a0b0', 'ffff', '1000'];
  for (const first of heads)
    for (const second of heads)
      for (const third of ['000', '001', '0ab', 'abc', 'f00']) {
        const id = `${first}${second}${third}`.padEnd(64, '5');
        assert.equal(addressOn(load, id), instanceAddress(prefix, id).guest, id);
      }
});
