import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import type { BlockId } from '@skerry/kit/unixfs';
import { AppError } from '@skerry/protocol';
import { UnixFS } from 'ipfs-unixfs';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import { MissedFiles } from '../files/missed.ts';
import { parseCid } from './cid.ts';
import { IpfsFetcher } from './fetcher.ts';
import { Dag } from './testing/dags.ts';
import { VainTries } from './vain-tries.ts';

const HOUR_MS = 3_600_000;
const LIMIT_BYTES = 4_000;
const log = createLogger('test', 'silent');

/** A file of some blocks of a thousand bytes. */
function fileOf(dag: Dag, blocks: number): { readonly root: string; readonly leaves: readonly string[] } {
  const leaves = Array.from({ length: blocks }, () => dag.put(randomBytes(1_000), 0x55));
  const file = new UnixFS({ type: 'file' });
  for (const _ of leaves) file.addBlockSize(1_000n);
  const root = dag.node(
    file,
    leaves.map((cid) => ({ cid, size: 1_000 })),
  );
  return { root: root.toString(), leaves: leaves.map(String) };
}

/** Has all blocks but some, and none of them before it is told so. */
function sourceOf(dag: Dag, withheld: ReadonlySet<string>) {
  const source = {
    isThere: false,
    fetch: async ({ text }: BlockId): Promise<Uint8Array> => {
      const at = dag.cids.findIndex((cid) => cid.toString() === text);
      if (!source.isThere || at < 0 || withheld.has(text))
        throw new AppError('CID_NOT_FOUND', 'nobody has it');
      return dag.blocks[at]!;
    },
  };
  return source;
}

const rootsOf = async ({ rooms: { db } }: TestCore) =>
  (await db.selectFrom('ipfs_dags').select('root').execute()).map(({ root }) => root);

/** A node with a STORE message of each CID, and what ends their time. */
async function openCore(source: ReturnType<typeof sourceOf>, roots: readonly string[]) {
  const clock = { ms: Date.now() };
  const core = await createTestCore({ now: () => clock.ms, blockSource: source });
  for (const item_hash of roots)
    await core.send(signers.alice, { type: 'STORE', content: { item_type: 'ipfs', item_hash } });
  const { db, pipeline } = core.rooms;
  const reject = async () => {
    clock.ms += HOUR_MS;
    await pipeline.expire();
    await pipeline.idle();
    // However late the last try was: it is due again.
    clock.ms += HOUR_MS;
    await until(
      'nothing is waited for',
      () => db.selectFrom('wanted_files').select('hash').execute(),
      (rows) => rows.length === 0,
    );
  };
  return { core, clock, reject };
}

test('S1: what a stranger withholds a part of, or is too large, takes no disk after the horizon, however often it is tried', async () => {
  const dag = new Dag();
  const [withheld, large] = [fileOf(dag, 3), fileOf(dag, 6)];
  const source = sourceOf(dag, new Set(withheld.leaves.slice(2)));
  const { core, clock, reject } = await openCore(source, [withheld.root, large.root]);
  await using _core = core;
  await reject();
  const { db, ipfs: files } = core.rooms;
  source.isThere = true;
  const now = () => clock.ms;
  const missed = new MissedFiles({ db, namedBy: 'cid', now, random: () => 0 });
  const limits = { limitBytes: LIMIT_BYTES, tryMs: HOUR_MS };
  const failed: number[] = [];
  {
    await using fetcher = new IpfsFetcher({ db, files, ...limits, now, missed, log });
    for (let pass = 0; pass < 3; pass++) {
      await missed.round();
      await until(
        'each had its turn',
        async () => {
          fetcher.wake();
          return missed.names;
        },
        (names) => names.length === 0,
      );
      failed.push(fetcher.counts.failed);
      clock.ms += 5 * HOUR_MS;
    }
  }
  assert.deepEqual(await rootsOf(core), []);
  assert.deepEqual(failed, [2, 3, 4], 'the one that is too large is tried once');
});

test('S1: what came of a CID is kept while a message waits for the rest', async () => {
  const dag = new Dag();
  const { root, leaves } = fileOf(dag, 3);
  const source = sourceOf(dag, new Set(leaves.slice(2)));
  source.isThere = true;
  const { core, reject } = await openCore(source, [root]);
  await using _core = core;
  const { ipfs } = core.rooms;
  const id = parseCid(root);
  const options = { limitBytes: LIMIT_BYTES, signal: new AbortController().signal };
  await assert.rejects(ipfs.pin(id, options), { code: 'CID_NOT_FOUND' });
  await ipfs.abandon(id);
  assert.deepEqual(await rootsOf(core), [root]);
  await reject();
  await ipfs.abandon(id);
  assert.deepEqual(await rootsOf(core), []);
});

test('S1: a CID that nobody gives whole is tried later and later, and given up after 24 times', () => {
  let nowMs = Date.now();
  const vain = new VainTries({ now: () => nowMs, random: () => 0 });
  const triedMs: number[] = [];
  const endMs = nowMs + 30 * 24 * HOUR_MS;
  for (; nowMs < endMs; nowMs += 60_000) {
    if (!vain.mayTry('a')) continue;
    triedMs.push(nowMs);
    vain.note('a', false);
  }
  assert.equal(triedMs.length, 24);
  const rests = triedMs.slice(1).map((ms, at) => (ms - triedMs[at]!) / 60_000);
  assert.deepEqual(rests.slice(0, 8), [3, 5, 10, 20, 40, 80, 120, 120]);
  assert.ok(vain.mayTry('b'));
  vain.note('b', true);
  nowMs += HOUR_MS;
  assert.ok(!vain.mayTry('b'));
  vain.end('b');
  assert.ok(vain.mayTry('b'));
});
