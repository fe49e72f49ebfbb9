import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { type BlockId, findBlockId } from '@skerry/kit/unixfs';
import { AppError } from '@skerry/protocol';
import { UnixFS } from 'ipfs-unixfs';
import type { CID } from 'multiformats/cid';
import { IPFS_LIMITS } from '../limits.ts';
import { Dag } from '../testing/dags.ts';
import { blocksOfPath, type Selection, selectBlocks } from './select.ts';

const { signal } = new AbortController();

/** The blocks of a DAG in memory that a selection has, as text. */
async function select(dag: Dag, root: CID, path: readonly string[], selection: Selection): Promise<string[]> {
  const kept = new Map(dag.cids.map((cid, n) => [findBlockId(cid)!.digest, dag.blocks[n]!]));
  const read = async ({ digest, text }: BlockId) => {
    const bytes = kept.get(digest);
    if (!bytes) throw new AppError('CID_NOT_FOUND', text);
    return bytes;
  };
  const way = await blocksOfPath(findBlockId(root)!, path, read, signal);
  const found: string[] = [];
  for await (const { id } of selectBlocks(way, selection, read)) found.push(id.text);
  return found;
}

test('a sharded directory comes with the shards that list it, or those on the way to an entry', async () => {
  const dag = new Dag();
  const name = (n: number) => `${'n'.repeat(190)}-${n}`;
  const count = 1_300;
  const files = Object.fromEntries(Array.from({ length: count }, (_, n) => [name(n), Buffer.from(`${n}`)]));
  const root = await dag.directory(files);
  const all = await select(dag, root, [], { scope: 'all' });
  assert.deepEqual([...all].sort(), dag.cids.map(String).sort());
  const entity = await select(dag, root, [], { scope: 'entity' });
  assert.equal(entity.length, all.length - count);
  const one = await select(dag, root, [name(718)], { scope: 'all' });
  assert.equal(one[0], root.toString());
  assert.ok(one.length < 6);
  assert.ok(!entity.includes(one.at(-1)!));
});

test('a block that is named many times comes once, under each of its CIDs', async () => {
  const dag = new Dag();
  const bytes = randomBytes(10);
  const raw = dag.put(bytes, 0x55);
  const links = [1, 2, 3].map((n) => ({ name: `${n}`, cid: raw, size: 10 }));
  const root = dag.node(new UnixFS({ type: 'directory' }), links);
  assert.deepEqual(await select(dag, root, [], { scope: 'all' }), [root, raw].map(String));
});

test('what is too deep, malformed or missing ends the selection with an error', async () => {
  const deep = new Dag();
  const bottom = deep.chain(IPFS_LIMITS.depth + 10);
  await assert.rejects(select(deep, bottom, [], { scope: 'all' }), { code: 'NOT_UNIXFS' });
  const dag = new Dag();
  const garbage = dag.put(randomBytes(50));
  const root = dag.node(new UnixFS({ type: 'directory' }), [{ name: 'a', cid: garbage, size: 1 }]);
  await assert.rejects(select(dag, root, [], { scope: 'all' }), { code: 'NOT_UNIXFS' });
  await assert.rejects(select(dag, new Dag().put(randomBytes(9), 0x55), [], { scope: 'all' }), {
    code: 'CID_NOT_FOUND',
  });
  // Its sizes are a lie: what they say is followed, and nothing more.
  const leaf = dag.put(randomBytes(100), 0x55);
  const lying = dag.node(new UnixFS({ type: 'file', blockSizes: [2n ** 60n] }), [{ cid: leaf, size: 100 }]);
  const asked = { scope: 'entity', bytes: { from: 5, to: undefined } } as const;
  assert.deepEqual(await select(dag, lying, [], asked), [lying, leaf].map(String));
  const silent = dag.node(new UnixFS({ type: 'file' }), [{ cid: leaf, size: 100 }]);
  assert.deepEqual(await select(dag, silent, [], asked), [String(silent)]);
});
