import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { UnixFS } from 'ipfs-unixfs';
import { createTestCore, type TestCore } from '../../testing/core.ts';
import { type BlockIndex, createBlockIndex, IMPORT_PREFIX } from './block-index.ts';
import { parseCid } from './cid.ts';
import { createEmbeddedIpfs } from './embedded.ts';
import type { BlockSource } from './gateways.ts';
import { IpfsFiles } from './ipfs-files.ts';
import { IPFS_LIMITS } from './limits.ts';
import { Dag } from './testing/dags.ts';

const GRACE_MS = 3_600_000;
/** Of dozens of blocks. */
const LONG_BYTES = 8 * 1024 * 1024;

describe('what is taken in and becomes no file', () => {
  let core: TestCore;
  let nowMs: number;
  let gone: AbortController;
  before(async () => {
    core = await createTestCore();
  });
  after(() => core[Symbol.asyncDispose]());
  beforeEach(() => {
    nowMs = Date.now();
    gone = new AbortController();
  });
  afterEach(async () => {
    await core.rooms.db.deleteFrom('ipfs_dags').execute();
    await core.rooms.db.deleteFrom('files').execute();
  });

  const nowhere: BlockSource = { fetch: () => assert.fail('all of it is here') };
  function open(
    change: (index: BlockIndex) => Partial<BlockIndex> = () => ({}),
    source = nowhere,
  ): IpfsFiles {
    const { db, pipeline, files } = core.rooms;
    const now = () => nowMs;
    const index = createBlockIndex(db, now);
    const options = {
      blobs: core.blobs,
      claims: files.claims,
      source,
      index: { ...index, ...change(index) },
    };
    const ipfs = createEmbeddedIpfs(options);
    return new IpfsFiles({ db, ipfs, pipeline, now, graceMs: GRACE_MS, timeoutMs: 1_000 });
  }
  const limits = () => ({ limitBytes: 1 << 30, signal: gone.signal });
  const add = (files: IpfsFiles, bytes: Uint8Array = randomBytes(300_000)) =>
    files.add(Readable.from([bytes]), { cidVersion: 0, ...limits() });
  const roots = async () => {
    const rows = await core.rooms.db.selectFrom('ipfs_dags').select('root').execute();
    return rows.map(({ root }) => root);
  };
  const named = async () => {
    const rows = await core.rooms.db.selectFrom('files').select('hash').execute();
    return rows.map(({ hash }) => hash);
  };

  test('a file whose sender left as the last of it had come is a file, and goes as others do', async () => {
    const files = open((index) => ({
      async complete(...what) {
        await index.complete(...what);
        gone.abort();
      },
    }));
    const { id } = await add(files);
    assert.deepEqual([await roots(), await named()], [[id.text], [id.text]]);
    nowMs += GRACE_MS + 1;
    await files.sweep();
    assert.deepEqual([await roots(), await named()], [[], []]);
  });

  test('where the process ended before the file was noted, its blocks are let go of after the grace period', async () => {
    const ended = () => Promise.reject(new Error('the process ended'));
    const failing = open((index) => ({
      drop: ended,
      async complete(...what) {
        await index.complete(...what);
        await ended();
      },
    }));
    await assert.rejects(add(failing), /ended/);
    const files = open();
    const { id: kept } = await add(files);
    await files.sweep();
    assert.equal((await roots()).length, 2, 'somebody may be about to note it');

    nowMs += GRACE_MS + 1;
    await files.pin(kept, limits());
    await files.sweep();
    assert.deepEqual(await roots(), [kept.text]);
  });

  test('what takes longer to come than the grace period is kept while it comes', async () => {
    let groups = 0;
    /** Whatever keeps blocks that come, once all are here. */
    let coming: string[] = [];
    const files = open((index) => ({
      async add(...what) {
        await index.add(...what);
        groups++;
        nowMs += 0.4 * GRACE_MS;
        await open().sweep();
      },
      async complete(...what) {
        coming = (await roots()).filter((root) => root.startsWith(IMPORT_PREFIX));
        await index.complete(...what);
      },
    }));
    const { id } = await add(files, randomBytes(LONG_BYTES));
    assert.ok(groups > 2, `${groups}`);
    assert.deepEqual([await roots(), await named()], [[id.text], [id.text]]);
    const dag = new Dag();
    const car = await dag.car(await dag.directory({ 'long.bin': randomBytes(LONG_BYTES) }));
    groups = 0;
    const { id: root } = await files.addCar(Readable.from([car]), limits());
    assert.ok(groups > 2, `${groups}`);
    assert.ok((await roots()).includes(root.text));
    assert.equal(coming.length, 2, 'all of the CAR, and what its root needs');
  });

  test('a pin whose blocks take longer than the grace period to come keeps all of them', async () => {
    const { parallelBlocks } = IPFS_LIMITS;
    const count = parallelBlocks + 4;
    const dag = new Dag();
    const root = await dag.directory(
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`${n}`, randomBytes(100)])),
    );
    const known = new Map(dag.cids.map((cid, n) => [String(cid), dag.blocks[n]!]));
    let asked = 0;
    const waiting: (() => void)[] = [];
    // As many as are fetched at the same time wait, then one comes.
    const fetch: BlockSource['fetch'] = async ({ text }) => {
      if (text === String(root)) return known.get(text)!;
      const turn = new Promise<void>((resolve) => waiting.push(resolve));
      if (++asked === count) for (const come of waiting.splice(0)) come();
      else if (waiting.length === parallelBlocks) {
        nowMs += 0.6 * GRACE_MS;
        await open().sweep();
        waiting.shift()!();
      }
      await turn;
      return known.get(text)!;
    };
    await open(undefined, { fetch }).pin(parseCid(String(root)), limits());
    assert.equal(asked, count);
    const kept = await core.rooms.db
      .selectFrom('ipfs_blocks')
      .select('block')
      .where('root', '=', String(root))
      .execute();
    assert.equal(kept.length, dag.blocks.length);
  });

  test('what was let go of while it came is not complete: it is tried again', async () => {
    const index = createBlockIndex(core.rooms.db, () => nowMs);
    const { id } = await add(open());
    await index.drop(id.text);
    await assert.rejects(index.complete(id.text, id.text), { code: 'IPFS_TIMEOUT' });
    await assert.rejects(index.complete('import:gone', id.text), { code: 'IPFS_TIMEOUT' });
    assert.deepEqual(await roots(), []);
    assert.equal(await index.isComplete(id.text), false);
  });

  test('what another process pins while the sweep lets go of it is kept', async () => {
    const isFile = async (hash: string) =>
      (await core.rooms.db.selectFrom('files').select('hash').where('hash', '=', hash).execute()).length > 0;
    const { id: found } = await add(open());
    const { id: dropped } = await add(open());
    nowMs += GRACE_MS + 1;
    const pinning = open((index) => ({
      async isComplete(cid) {
        const isComplete = await index.isComplete(cid);
        await open((other) => ({
          async drop(...what) {
            await open().pin(dropped, limits());
            await other.drop(...what);
          },
        })).sweep();
        assert.ok(await isFile(cid), 'whoever reads it meanwhile finds it');
        return isComplete;
      },
    }));
    await pinning.pin(found, limits());
    assert.deepEqual((await roots()).toSorted(), [dropped.text, found.text].toSorted());
    assert.ok(await isFile(dropped.text));
  });

  test('what became no file long ago becomes one where it is pinned, also beside the sweep', async () => {
    const bytes = randomBytes(300_000);
    const failing = open(() => ({ isComplete: () => Promise.reject(new Error('the database is away')) }));
    await assert.rejects(add(failing, bytes), /away/);
    const [root] = await roots();
    nowMs += GRACE_MS + 1;
    const swept = open((index) => ({
      async isComplete(cid) {
        const isComplete = await index.isComplete(cid);
        await open().sweep();
        return isComplete;
      },
    }));
    await swept.pin(parseCid(root!), limits());
    assert.deepEqual([await roots(), await named()], [[root], [root]]);
  });

  test('what is taken in again goes no sooner for a clock that was set back meanwhile', async () => {
    const files = open();
    const { id } = await add(files);
    const times = () =>
      core.rooms.db
        .selectFrom('ipfs_dags')
        .innerJoin('files', 'files.hash', 'ipfs_dags.root')
        .select(['root', 'touched_ms', 'stored_at'])
        .execute();
    const before = await times();
    nowMs -= 2 * GRACE_MS;
    await createBlockIndex(core.rooms.db, () => nowMs).complete(id.text, id.text);
    assert.deepEqual(await times(), before, 'all of it came');
    await files.pin(id, limits());
    assert.deepEqual(await times(), before, 'it was pinned');
    nowMs += 2 * GRACE_MS;
    await files.sweep();
    assert.deepEqual([await roots(), await named()], [[id.text], [id.text]]);
  });

  test('nothing of a CAR that lacks a block is kept for its root', async () => {
    const dag = new Dag();
    const here = dag.node(new UnixFS({ type: 'file', data: randomBytes(1_000) }));
    const missing = new Dag().node(new UnixFS({ type: 'file', data: randomBytes(8) }));
    const links = [
      { name: 'a', cid: here, size: 1 },
      { name: 'b', cid: missing, size: 1 },
    ];
    const car = await dag.car(dag.node(new UnixFS({ type: 'directory' }), links));
    await assert.rejects(open().addCar(Readable.from([car]), limits()), { code: 'INVALID_CAR' });
    assert.deepEqual(await roots(), []);
  });
});
