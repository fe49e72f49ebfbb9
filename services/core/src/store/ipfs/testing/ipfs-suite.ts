import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { type BlockId, findBlockId } from '@skerry/kit/unixfs';
import { UnixFS } from 'ipfs-unixfs';
import { parseCid } from '../cid.ts';
import type { Ipfs } from '../ipfs.ts';
import { Dag } from './dags.ts';

export interface IpfsUnderTest extends AsyncDisposable {
  readonly ipfs: Ipfs;
  /** Puts blocks where this one fetches from, as if somebody else had them. */
  offer(blocks: readonly Uint8Array[]): Promise<void>;
  /** Whether it keeps the CID. */
  keeps(id: BlockId): Promise<boolean>;
}

const LIMIT = 256 * 1024 * 1024;
const { signal } = new AbortController();
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const add = (ipfs: Ipfs, bytes: Uint8Array, cidVersion: 0 | 1 = 0, limitBytes = LIMIT) =>
  ipfs.add(Readable.from([bytes]), { cidVersion, limitBytes, signal });
const readAll = async (ipfs: Ipfs, id: BlockId, range?: { first: number; last: number }) =>
  buffer(await ipfs.read(id, range, signal));

/** What every adapter does. `open` gives one, with nothing of these tests in it. */
export function describeIpfs(name: string, open: () => Promise<IpfsUnderTest>): void {
  describe(`IPFS by ${name}`, () => {
    test('a file comes back as it went in, whole and by range, under the CID that kubo gives it', async () => {
      await using under = await open();
      const { ipfs } = under;
      const known = await add(ipfs, Buffer.from('hello world'));
      assert.equal(known.id.text, 'Qmf412jQZiuVUtdgnB36FXFX7xg5V6KEbSJ4dpQuhkLyfD');
      for (const [size, version] of [
        [0, 0],
        [1, 1],
        [262_144, 0],
        [1_000_003, 0],
        [1_000_003, 1],
      ] as const) {
        const bytes = randomBytes(size);
        const { id, kind, sizeBytes } = await add(ipfs, bytes, version);
        assert.deepEqual([kind, sizeBytes], ['file', size]);
        assert.equal(sha256(await readAll(ipfs, id)), sha256(bytes), `${size}`);
        assert.ok(await under.keeps(id));
        if (size < 2) continue;
        const [first, last] = [262_100, Math.min(size - 1, 524_300)];
        if (first < size)
          assert.deepEqual(await readAll(ipfs, id, { first, last }), bytes.subarray(first, last + 1));
      }
    });

    test('a file beyond the limit is refused, and so is one whose sender breaks off', async () => {
      await using under = await open();
      await assert.rejects(add(under.ipfs, randomBytes(300_000), 0, 299_999), { code: 'FILE_TOO_LARGE' });
      const broken = Readable.from(
        (async function* () {
          yield randomBytes(300_000);
          throw Object.assign(new Error('gone'), { code: 'GONE' });
        })(),
      );
      await assert.rejects(under.ipfs.add(broken, { cidVersion: 0, limitBytes: LIMIT, signal }), {
        code: 'GONE',
      });
    });

    test('a directory that others have is fetched whole, listed, and read by path', async () => {
      await using under = await open();
      const { ipfs } = under;
      const dag = new Dag();
      const large = randomBytes(700_000);
      const root = await dag.directory({
        'a.txt': Buffer.from('one'),
        'b/c d%.txt': Buffer.from('two'),
        'b/large.bin': large,
      });
      await under.offer(dag.blocks);
      const id = parseCid(root.toString());
      assert.equal((await ipfs.pin(id, { limitBytes: LIMIT, signal })).kind, 'directory');
      assert.ok(await under.keeps(id));
      const names = (await ipfs.list(id, 10, signal)).map((entry) => entry.name);
      assert.deepEqual(names, ['a.txt', 'b']);
      assert.equal((await ipfs.list(id, 1, signal)).length, 1);
      const found = await ipfs.stat(id, ['b', 'c d%.txt'], signal);
      assert.deepEqual((await readAll(ipfs, found.id)).toString(), 'two');
      const big = await ipfs.stat(id, ['b', 'large.bin'], signal);
      assert.deepEqual(await readAll(ipfs, big.id), large);
      for (const path of [
        ['b', 'nothing'],
        ['a.txt', 'x'],
        ['nothing', 'x'],
      ])
        await assert.rejects(ipfs.stat(id, path, signal), { code: 'FILE_NOT_FOUND' }, path.join());
      await assert.rejects(ipfs.read(id, undefined, signal), { code: 'NOT_UNIXFS' });
      assert.equal(sha256(await ipfs.block(id, signal)), id.digest);
      const laterMs = Date.now() + 60_000;
      await ipfs.unpin(id, laterMs);
      await ipfs.unpin(id, laterMs);
      assert.equal(await under.keeps(id), false);
    });

    test('a CAR is taken in whole and kept; one that lacks a block below its root, or is cut off, is not', async () => {
      await using under = await open();
      const { ipfs } = under;
      const dag = new Dag();
      const large = randomBytes(700_000);
      const root = await dag.directory({ 'a.txt': Buffer.from('one'), 'b/large.bin': large });
      const id = parseCid(root.toString());
      const car = await dag.car(root);
      const take = (bytes: Buffer, limitBytes = LIMIT) =>
        ipfs.addCar(Readable.from([bytes]), { limitBytes, signal });
      await assert.rejects(take(car, 600_000), { code: 'FILE_TOO_LARGE' });
      await assert.rejects(take(car.subarray(0, -1)), { code: 'INVALID_CAR' });
      await assert.rejects(take(await dag.car(root, root)), { code: 'INVALID_CAR' });
      if (ipfs.name === 'embedded') {
        const lacking = new Dag();
        const missing = new Dag().node(new UnixFS({ type: 'file', data: randomBytes(8) }));
        const half = lacking.node(new UnixFS({ type: 'directory' }), [{ name: 'a', cid: missing, size: 1 }]);
        await assert.rejects(take(await lacking.car(half)), { code: 'INVALID_CAR' });
        assert.equal(await under.keeps(findBlockId(half)!), false);
      }
      assert.equal((await take(car)).kind, 'directory');
      assert.ok(await under.keeps(id));
      const found = await ipfs.stat(id, ['b', 'large.bin'], signal);
      assert.deepEqual(await readAll(ipfs, found.id), large);
    });

    test('a directory that is sharded is one directory', async () => {
      await using under = await open();
      const dag = new Dag();
      const files = Object.fromEntries(
        Array.from({ length: 1_300 }, (_, n) => [`${'n'.repeat(190)}-${n}`, Buffer.from('x')]),
      );
      const root = await dag.directory(files);
      await under.offer(dag.blocks);
      const id = parseCid(root.toString());
      const entries = await under.ipfs.list(id, 10_000, signal);
      assert.equal(entries.length, 1_300);
      const name = `${'n'.repeat(190)}-718`;
      assert.ok(entries.some((entry) => entry.name === name));
      assert.equal((await under.ipfs.stat(id, [name], signal)).sizeBytes, 1);
    });

    test('what nobody has, what is no UnixFS, and what is too large or too deep is refused', async () => {
      await using under = await open();
      const { ipfs } = under;
      const pin = (cid: { toString(): string }, limitBytes = LIMIT) =>
        ipfs.pin(parseCid(cid.toString()), { limitBytes, signal });
      const dag = new Dag();
      const missing = new Dag().node(new UnixFS({ type: 'file', data: randomBytes(8) }));
      await assert.rejects(pin(missing), { code: 'CID_NOT_FOUND' });
      const garbage = dag.put(randomBytes(64));
      const half = dag.node(new UnixFS({ type: 'directory' }), [{ name: 'gone', cid: missing, size: 1 }]);
      const large = dag.node(new UnixFS({ type: 'directory' }), [
        { name: 'a', cid: dag.put(randomBytes(200_000), 0x55), size: 1 },
        { name: 'b', cid: dag.put(randomBytes(200_000), 0x55), size: 1 },
      ]);
      await under.offer(dag.blocks);
      await assert.rejects(pin(garbage), { code: 'NOT_UNIXFS' });
      await assert.rejects(ipfs.stat(findBlockId(half)!, ['gone'], signal), { code: 'CID_NOT_FOUND' });
      // Its root says that it has a few bytes.
      if (ipfs.name === 'embedded') {
        await assert.rejects(pin(half), { code: 'CID_NOT_FOUND' });
        await assert.rejects(pin(large, 300_000), { code: 'FILE_TOO_LARGE' });
        const deep = new Dag();
        const root = deep.chain(140);
        await under.offer(deep.blocks);
        await assert.rejects(pin(root), { code: 'NOT_UNIXFS' });
      }
    });
  });
}
