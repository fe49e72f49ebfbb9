import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { AppError } from '@skerry/protocol';
import { UnixFS } from 'ipfs-unixfs';
import type { CID } from 'multiformats/cid';
import type { ByteRange } from '../files/blob-store.ts';
import { findBlockId } from './cid.ts';
import { Dag } from './testing/dags.ts';
import { createUnixfs } from './unixfs.ts';

const isError = (code: string) => (error: unknown) => error instanceof AppError && error.code === code;
const { signal } = new AbortController();

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
  const raw = { cid: files.dag.put(randomBytes(3), 0x55), size: 3 };
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
