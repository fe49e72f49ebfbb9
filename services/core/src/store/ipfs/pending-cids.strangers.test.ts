import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { createSigner, type Signer } from '@skerry/client';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import type { BlockId } from '@skerry/kit/unixfs';
import { AppError, sha256Hex } from '@skerry/protocol';
import { UnixFS } from 'ipfs-unixfs';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import { IpfsFetcher } from './fetcher.ts';
import { Dag } from './testing/dags.ts';

const { alice, bob } = signers;
const SECOND_MS = 1_000;
/** In so long one more may be tried in vain. */
const TRY_MS = 4_286;
const log = createLogger('test', 'silent');

/** Has some blocks. */
class Source {
  readonly dag = new Dag();
  readonly asked: string[] = [];
  readonly #here = new Set<string>();
  /** Where set, what the disk says of every block. */
  failure: AppError | undefined;
  /** Of what was asked for before nothing is said. */
  isSilentAgain = false;
  /** Nothing is said of what is not here. */
  isSilent = false;

  /** @returns its CID */
  put(isHere: boolean): string {
    const cid = this.dag.node(new UnixFS({ type: 'file', data: randomBytes(8) })).toString();
    if (isHere) this.#here.add(cid);
    return cid;
  }

  async fetch({ text }: BlockId, signal: AbortSignal): Promise<Uint8Array> {
    const isAgain = this.asked.includes(text);
    this.asked.push(text);
    if (this.failure) throw this.failure;
    if (this.#here.has(text)) return this.dag.blocks[this.dag.cids.findIndex((cid) => `${cid}` === text)]!;
    if (this.isSilent || (isAgain && this.isSilentAgain))
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    throw new AppError('CID_NOT_FOUND', 'nobody has it');
  }
}

/** A node on which nothing is fetched before `startFetcher`. */
async function openCore(source: Source, now: () => number): Promise<TestCore> {
  const core = await createTestCore({ now, blockSource: source });
  await core.fetcher[Symbol.asyncDispose]();
  return core;
}

/** @param noteIdle called where it looks and begins none of what messages wait for, though there is room */
const startFetcher = (
  { rooms: { db, ipfs: files, now } }: TestCore,
  noteIdle: () => void = () => {},
  random = () => 0,
) =>
  new IpfsFetcher({
    ...{ db, files, now, log, random },
    ...{ limitBytes: 1_000_000, tryMs: 600 * SECOND_MS },
    missed: {
      get names() {
        noteIdle();
        return [];
      },
      note() {},
      skip() {},
    },
  });

const store = (item_hash: string) => ({ type: 'STORE', content: { item_type: 'ipfs', item_hash } });
const isHere = async ({ rooms: { db } }: TestCore, cid: string) =>
  (await db.selectFrom('files').select('hash').where('hash', '=', cid).execute()).length > 0;

test('S1: CIDs that nobody has take a few tries a minute, and one that somebody has is next', async () => {
  let nowMs = Date.now();
  const source = new Source();
  await using core = await openCore(source, () => nowMs);
  for (let n = 0; n < 40; n++) await core.send(alice, store(source.put(false)));
  let looked = 0;
  await using fetcher = startFetcher(core, () => looked++);
  await until('it looks and begins nothing', () => looked);
  await until('those under way ended', () => fetcher.counts.failed >= 14);
  assert.deepEqual([source.asked.length, new Set(source.asked).size], [14, 14]);
  const known = source.put(true);
  await core.send(bob, store(known));
  nowMs += 5 * SECOND_MS;
  fetcher.wake();
  await until('it came', () => isHere(core, known));
  const before = source.asked.slice(0, source.asked.indexOf(known));
  assert.deepEqual([new Set(before).size, before.length <= 14 + 8], [14, true]);
});

test('S1: CIDs that are tried again leave half of the places to those that are new', async () => {
  let nowMs = Date.now();
  const source = new Source();
  source.isSilentAgain = true;
  await using core = await openCore(source, () => nowMs);
  for (let n = 0; n < 6; n++) await core.send(alice, store(source.put(false)));
  await using fetcher = startFetcher(core);
  await until('each was tried', () => fetcher.counts.failed >= 6);
  nowMs += 5 * SECOND_MS;
  await until('some are tried again', () => source.asked.length >= 8);
  const known = source.put(true);
  await core.send(bob, store(known));
  await until('it came', () => isHere(core, known));
  assert.equal(source.asked.filter((cid) => cid !== known).length, 8);
});

test('S1: a key that had to wait for a CID has its turn, however many new keys come', async () => {
  let nowMs = Date.now();
  const source = new Source();
  await using core = await openCore(source, () => nowMs);
  for (let n = 0; n < 14; n++) await core.send(alice, store(source.put(false)));
  await using fetcher = startFetcher(core, undefined, () => 0.9);
  await until('each was tried', () => fetcher.counts.failed >= 14);
  const known = source.put(true);
  await core.send(alice, store(known));
  // One try at a time, and always another key that has made none: the chance is one in two.
  for (let n = 1; n <= 64 && !(await isHere(core, known)); n++) {
    const unknown = source.put(false);
    await core.send(createSigner(`0x${n.toString(16).padStart(64, '0')}`), store(unknown));
    const before = new Set(source.asked).size;
    nowMs += TRY_MS;
    fetcher.wake();
    await until('one more was tried', () => new Set(source.asked).size > before);
  }
  await until('it came', () => isHere(core, known));
});

for (const isSilent of [false, true])
  test(`S1: keys that are new ${isSilent ? 'take no places from' : 'use up no tries of'} those who kept a file a day ago`, async () => {
    let nowMs = Date.now();
    const source = new Source();
    source.isSilent = isSilent;
    await using core = await openCore(source, () => nowMs);
    const keep = async (signer: Signer, text: string) => {
      const headers = { 'content-type': 'application/octet-stream' };
      assert.equal((await core.post('/storage/add_file', Buffer.from(text), headers)).status, 200);
      const content = { item_type: 'storage', item_hash: sha256Hex(text) };
      assert.equal((await core.send(signer, { type: 'STORE', content })).status, 200);
    };
    await keep(alice, 'of alice');
    nowMs += 24 * 3_600 * SECOND_MS;
    await keep(bob, 'of bob');
    for (let n = 1; n <= 40; n++)
      await core.send(createSigner(`0x${n.toString(16).padStart(64, '0')}`), store(source.put(false)));
    const tried = isSilent ? 4 : 14;
    await using fetcher = startFetcher(core);
    await until('no more is tried', () => new Set(source.asked).size >= tried);
    const [ofAlice, ofBob] = [source.put(true), source.put(true)];
    await core.send(bob, store(ofBob));
    await core.send(alice, store(ofAlice));
    // Before one more may be tried in vain.
    nowMs += 4 * SECOND_MS;
    fetcher.wake();
    await until('it came', () => isHere(core, ofAlice));
    assert.equal(await isHere(core, ofBob), false);
  });

test('tries that fail for want of disk are not in vain', async () => {
  const nowMs = Date.now();
  const source = new Source();
  source.failure = new AppError('STORAGE_FULL', 'the disk is full');
  await using core = await openCore(source, () => nowMs);
  const signed = Array.from({ length: 20 }, () => source.put(false));
  for (const cid of signed) await core.send(alice, store(cid));
  await using fetcher = startFetcher(core);
  await until('each was tried', () => fetcher.counts.failed >= signed.length);
  assert.deepEqual(new Set(source.asked), new Set(signed));
});
