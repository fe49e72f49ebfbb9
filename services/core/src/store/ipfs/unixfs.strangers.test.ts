import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { buffer } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { type BlockId, findBlockId } from '@skerry/kit/unixfs';
import { AppError } from '@skerry/protocol';
import { UnixFS } from 'ipfs-unixfs';
import type { CID } from 'multiformats/cid';
import type { ByteRange } from '../files/blob-store.ts';
import { Dag } from './testing/dags.ts';
import { createUnixfs } from './unixfs.ts';
import { walkDag } from './walk.ts';

const isError = (code: string) => (error: unknown) => error instanceof AppError && error.code === code;
const { signal } = new AbortController();
const RAW = 0x55;

/** Files of a few blocks, and how many were read. */
class Files {
  readonly dag = new Dag();
  reads = 0;

  leaf(bytes: Uint8Array): { cid: CID; size: number } {
    return { cid: this.dag.node(new UnixFS({ type: 'file', data: bytes })), size: bytes.length };
  }

  /** One part, so many times. */
  repeat(part: { cid: CID; size: number }, count: number): { cid: CID; size: number } {
    const blockSizes = Array.from({ length: count }, () => BigInt(part.size));
    const links = Array.from({ length: count }, () => part);
    return { cid: this.dag.node(new UnixFS({ type: 'file', blockSizes }), links), size: count * part.size };
  }

  /** @param missing a part that cannot be had */
  read({ cid }: { cid: CID }, range?: ByteRange, missing?: { cid: CID }) {
    const blocks = new Map(this.dag.cids.map((one, index) => [`${one}`, this.dag.blocks[index]!]));
    const { read } = createUnixfs(async ({ text }) => {
      this.reads++;
      if (text === `${missing?.cid}`) throw new AppError('FILE_NOT_FOUND', 'nobody has it');
      return blocks.get(text)!;
    });
    return read(findBlockId(cid)!, range, signal);
  }
}

test('a file is not read ahead of whoever takes it slowly', async () => {
  const files = new Files();
  const [size, count] = [64 * 1024, 1_024];
  const stream = await files.read(files.repeat(files.leaf(randomBytes(size)), count));
  const pieces = stream[Symbol.asyncIterator]();
  let bytes = (await pieces.next()).value.length;
  for (let turn = 0; turn < 1_000; turn++) await setImmediate();
  assert.ok(files.reads < 100, `${files.reads} blocks`);
  for await (const piece of pieces) bytes += piece.length;
  assert.equal(bytes, size * count);
});

test('a file in pieces of a byte, which a few blocks are enough for, is not read', async () => {
  const files = new Files();
  const stream = await files.read(files.repeat(files.repeat(files.leaf(randomBytes(1)), 3_000), 3));
  await assert.rejects(buffer(stream), isError('NOT_UNIXFS'));
  assert.ok(files.reads < 5_000, `${files.reads} blocks`);
});

test('a block far below that cannot be had, or is unsound, ends the reading and nothing else', async () => {
  const files = new Files();
  const leaf = files.leaf(randomBytes(8));
  const below = (part: { cid: CID; size: number }) => files.repeat(files.repeat(part, 3), 3);
  await assert.rejects(
    files.read(below(leaf), undefined, leaf).then((stream) => buffer(stream)),
    isError('FILE_NOT_FOUND'),
  );
  const unsound = [
    { cid: files.dag.put(randomBytes(8)), size: 8 },
    { cid: files.dag.node(new UnixFS({ type: 'file', blockSizes: [8n] })), size: 8 },
    { cid: files.dag.node(new UnixFS({ type: 'directory' })), size: 8 },
    { ...leaf, size: 9 },
  ];
  for (const part of unsound) {
    const stream = await files.read(below(part));
    await assert.rejects(buffer(stream), isError('NOT_UNIXFS'));
  }
  // Whatever was not waited for is heard of by now.
  for (let turn = 0; turn < 10; turn++) await setImmediate();
});

test('any part of a file is what it is of the whole', async () => {
  const files = new Files();
  const empty = files.leaf(new Uint8Array());
  const raw = { cid: files.dag.put(randomBytes(3), RAW), size: 3 };
  const parts = [files.leaf(randomBytes(2)), empty, files.repeat(raw, 2), raw];
  const blockSizes = parts.map(({ size }) => BigInt(size));
  const data = randomBytes(2);
  const file = { cid: files.dag.node(new UnixFS({ type: 'file', data, blockSizes }), parts), size: 13 };
  const whole = await buffer(await files.read(file));
  assert.equal(whole.length, file.size);
  assert.deepEqual(whole.subarray(0, 2), data);
  for (let first = 0; first < file.size; first++)
    for (let last = first; last < file.size; last++)
      assert.deepEqual(
        await buffer(await files.read(file, { first, last })),
        whole.subarray(first, last + 1),
      );
});

/** Reads blocks of a DAG in memory, and notes which. */
function reading(dag: Dag) {
  const kept = new Map(dag.cids.map((cid, n) => [findBlockId(cid)!.digest, dag.blocks[n]!]));
  const asked: string[] = [];
  const read = async ({ digest, text }: BlockId) => {
    asked.push(text);
    const bytes = kept.get(digest);
    if (!bytes) throw new AppError('CID_NOT_FOUND', text);
    return bytes;
  };
  return { asked, read, unixfs: createUnixfs(read) };
}

const idOf = (cid: CID) => findBlockId(cid)!;
const fileOf = (blockSizes: readonly number[], data?: Uint8Array) =>
  new UnixFS({ type: 'file', blockSizes: blockSizes.map(BigInt), ...(data ? { data } : {}) });
const linksTo = (cid: CID, count: number) => Array.from({ length: count }, () => ({ cid, size: 0 }));
const shardOf = (fanout: bigint) =>
  new UnixFS({ type: 'hamt-sharded-directory', data: new Uint8Array([3]), hashType: 0x22n, fanout });

describe('files and directories that strangers made', () => {
  test('a directory whose shards tell no names apart is none: looking for a name in it ended the process', async () => {
    for (const fanout of [1n, 3n, 2n ** 40n]) {
      const dag = new Dag();
      const leaf = dag.put(Buffer.from('leaf'), RAW);
      const links = ['0a', '0b'].map((name) => ({ name, cid: leaf, size: 4 }));
      const root = dag.node(shardOf(fanout), links);
      const { unixfs } = reading(dag);
      await assert.rejects(unixfs.stat(idOf(root), ['c'], signal), { code: 'NOT_UNIXFS' }, `${fanout}`);
      await assert.rejects(unixfs.list(idOf(root), 10, signal), { code: 'NOT_UNIXFS' }, `${fanout}`);
    }
  });

  test('shards that lead to ever more shards, and to no entry, are not gone through', async () => {
    const dag = new Dag();
    const names = Array.from({ length: 16 }, (_, n) => n.toString(16).toUpperCase());
    let below = dag.node(shardOf(16n));
    for (let depth = 0; depth < 6; depth++) {
      const cid = below;
      below = dag.node(
        shardOf(16n),
        names.map((name) => ({ name, cid, size: 1 })),
      );
    }
    const { unixfs, asked } = reading(dag);
    await assert.rejects(unixfs.list(idOf(below), 10, signal), { code: 'NOT_UNIXFS' });
    assert.ok(asked.length < 20_000, `${asked.length}`);
  });

  test('what has no bytes of a file is not read, however much of it there is', async () => {
    const dag = new Dag();
    let below = dag.node(fileOf([], new Uint8Array()));
    for (let depth = 0; depth < 4; depth++) below = dag.node(fileOf(Array(50).fill(0)), linksTo(below, 50));
    const root = dag.node(fileOf(Array(50).fill(0), Buffer.from('x')), linksTo(below, 50));
    const { unixfs, asked } = reading(dag);
    assert.equal((await unixfs.stat(idOf(root), [], signal)).sizeBytes, 1);
    asked.length = 0;
    assert.equal(String(await buffer(await unixfs.read(idOf(root), undefined, signal))), 'x');
    assert.equal(String(await buffer(await unixfs.read(idOf(root), { first: 0, last: 0 }, signal))), 'x');
    assert.deepEqual(asked, [String(root), String(root)]);
  });

  test('of a wide file a few blocks are held, and none is read once nobody reads on', async () => {
    const dag = new Dag();
    const leaf = Buffer.alloc(256 * 1024, 'a');
    const count = 400;
    const cid = dag.put(leaf, RAW);
    const root = dag.node(fileOf(Array(count).fill(leaf.length)), linksTo(cid, count));
    const { unixfs, asked } = reading(dag);
    const stream = await unixfs.read(idOf(root), undefined, signal);
    await once(stream, 'readable');
    assert.ok(asked.length < 20, `${asked.length} blocks were asked for`);
    stream.destroy();
    await once(stream, 'close');
    const before = asked.length;
    await setImmediate();
    assert.equal(asked.length, before);
  });

  test('a block of another size than the one above it says ends the file', async () => {
    for (const [said, bytes] of [
      [5, 'long'],
      [3, 'long'],
      [0, 'long'],
    ] as const) {
      const dag = new Dag();
      const leaf = dag.put(Buffer.from(bytes), RAW);
      const inner = dag.node(fileOf([4]), [{ cid: leaf, size: 4 }]);
      for (const cid of [leaf, inner]) {
        const root = dag.node(fileOf([said, 4]), [
          { cid, size: 4 },
          { cid: leaf, size: 4 },
        ]);
        const read = async () => buffer(await reading(dag).unixfs.read(idOf(root), undefined, signal));
        if (said === 0) assert.equal(String(await read()), 'long');
        else await assert.rejects(read(), { code: 'NOT_UNIXFS' }, `${said}`);
      }
    }
  });

  test('a block that is named as bare bytes and as a node is gone through as a node', async () => {
    const dag = new Dag();
    const leaf = dag.put(Buffer.from('leaf'), RAW);
    const inner = dag.node(new UnixFS({ type: 'directory' }), [{ name: 'leaf', cid: leaf, size: 4 }]);
    const asBytes = dag.put(dag.blocks.at(-1)!, RAW);
    const root = dag.node(new UnixFS({ type: 'directory' }), [
      { name: 'a', cid: asBytes, size: 4 },
      { name: 'b', cid: inner, size: 4 },
    ]);
    const { read, asked } = reading(dag);
    const noted: string[] = [];
    await walkDag(idOf(root), {
      limitBytes: 1_000,
      signal,
      note: async (digests) => void noted.push(...digests),
      obtain: read,
    });
    assert.ok(asked.includes(String(leaf)) && noted.includes(idOf(leaf).digest));
  });
});
