import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { sha256Hex } from '@skerry/protocol';
import { createTestCore, signers } from '../../testing/core.ts';
import { FileFetcher } from './fetcher.ts';
import type { FileSource } from './fetching/source.ts';
import { listDue, postponeWant, wantFiles } from './wanted.ts';

const { alice, bob } = signers;
const log = createLogger('test', 'silent');
const HOUR_MS = 3_600_000;
const signal = new AbortController().signal;
const store = (hash: string) => ({ type: 'STORE', content: { item_type: 'storage', item_hash: hash } });

test('files that nobody has delay only those of who names them', async () => {
  await using core = await createTestCore();
  for (let n = 0; n < 20; n++) await core.send(alice, store(sha256Hex(`unknown ${n}`)));
  const wanted = sha256Hex('wanted');
  await core.send(bob, store(wanted));
  const asked: string[] = [];
  const source: FileSource = {
    name: 'nobody',
    handles: () => true,
    open: async (name) => {
      asked.push(name);
      return undefined;
    },
  };
  const fetcher = new FileFetcher({ ...core.rooms, sources: [source], parallel: 2, log });
  await fetcher.look(signal);
  await fetcher.idle();
  assert.ok(asked.includes(wanted), 'it is among the first two');
});

test('S1: of senders that name one file each, any is next, however long the others have waited', async () => {
  let nowMs = Date.now();
  await using core = await createTestCore({ now: () => nowMs });
  const names = ['first', 'second', 'third'].map(sha256Hex);
  for (const [n, sender] of [signers.node, bob, alice].entries()) {
    await core.send(sender, store(names[n]!));
    nowMs += 1_000;
  }
  const asked: string[] = [];
  const open: FileSource['open'] = async (name) => {
    asked.push(name);
    return undefined;
  };
  const sources = [{ name: 'nobody', handles: () => true, open }];
  let drawn = 1;
  const random = () => {
    drawn /= 2;
    return drawn;
  };
  const fetcher = new FileFetcher({ ...core.rooms, sources, parallel: 1, random, log });
  await fetcher.look(signal);
  await fetcher.idle();
  assert.deepEqual(asked, [names[2]]);
});

test('files of IPFS that nobody has delay only those of who names them', async () => {
  await using core = await createTestCore();
  const { db } = core.rooms;
  const [many, one] = [Array.from({ length: 20 }, (_, n) => sha256Hex(`unknown ${n}`)), sha256Hex('wanted')];
  // Whatever their names are, they wait as files of IPFS do.
  for (const hash of many) await core.send(alice, store(hash));
  await core.send(bob, store(one));
  // Not due yet for the node itself, which would take them, and put them off.
  const dueMs = Date.now() + 200_000;
  await db.transaction().execute(async (trx) => {
    await wantFiles(trx, many, dueMs);
    await wantFiles(trx, [one], dueMs + 1_000);
  });
  const dueAt = async (nowMs: number, limit: number, begun: readonly string[] = []) =>
    (await listDue(db, { nowMs, postponedMaxMs: 300_000 }, limit, begun)).map(({ hash }) => hash);
  const due = (limit: number, begun?: readonly string[]) => dueAt(dueMs + 2_000, limit, begun);
  assert.ok((await due(2)).includes(one));
  // Places come free one at a time, and the other's have been due for longer.
  const first = many[0]!;
  assert.deepEqual(await due(1, [first]), [one]);
  assert.equal((await due(100, [first, one])).length, 19);
  assert.deepEqual(await dueAt(dueMs - 1, 100), []);
  assert.equal((await dueAt(dueMs - HOUR_MS, 100)).length, 21, 'the clock was set back');
});

/** As many draws as this leave one of two out once in 2^64 times. */
const DRAWS = 64;

test('S1: CIDs of keys that nobody used before do not keep those behind them from their turn, nor those of a key that waits for others', async () => {
  await using core = await createTestCore();
  const { db } = core.rooms;
  const [flood, vain, known] = ['flood', 'vain', 'known'].map(sha256Hex) as [string, string, string];
  await core.send(signers.node, store(flood));
  await core.send(alice, store(known));
  const dueMs = Date.now() + 200_000;
  const want = (hash: string, ms: number) => db.transaction().execute((trx) => wantFiles(trx, [hash], ms));
  await want(flood, dueMs);
  await want(known, dueMs + 1);
  const draw = async (by: 'tries' | 'lot') => {
    const which = { nowMs: dueMs + 2, postponedMaxMs: 300_000, sorts: ['new'], by } as const;
    const drawn = new Set<string>();
    for (let n = 0; n < DRAWS; n++) for (const { hash } of await listDue(db, which, 1, [])) drawn.add(hash);
    return drawn;
  };
  assert.deepEqual(await draw('tries'), new Set([flood, known]));
  // Of the same sender one is waited for that was tried.
  await core.send(alice, store(vain));
  await want(vain, dueMs);
  await postponeWant(db, vain, dueMs, { code: 'CID_NOT_FOUND', message: 'nobody has it' });
  assert.deepEqual(await draw('tries'), new Set([flood]));
  assert.deepEqual(await draw('lot'), new Set([flood, known]));
});
