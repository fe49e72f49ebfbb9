import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { signMessage } from '@skerry/client';
import { createWrite, type Database } from '@skerry/database';
import { createTestDatabase } from '@skerry/database/testing';
import { NO_NETWORKS } from '@skerry/indexer';
import { createLogger } from '@skerry/kit';
import { EMITTER, STRANGER } from '../../sim/testing/chain.ts';
import type { Schema } from '../../store/schema.ts';
import { createTestCore, MIGRATIONS, signers, type TestCore } from '../../testing/core.ts';
import { archiveOf, syncContentOf } from './archive.ts';
import { CatchUp } from './catch-up.ts';
import { followOnce, forgiveEmitters } from './follower.ts';
import { listOpen, notePacked, noteSent, settlePacked } from './packed.ts';
import { Packer } from './packer.ts';
import { Processor } from './processor.ts';
import type { ChainReader } from './reader.ts';
import { parseAnchorSettings } from './settings.ts';

const log = createLogger('test', 'silent');
const HEAD = 20;
const [CONTRACT, OTHER] = [`0x${'c0'.repeat(20)}`, `0x${'c1'.repeat(20)}`];

function post(content: string): { readonly text: string; readonly itemHash: string } {
  const { body, itemHash } = signMessage({ type: 'POST', content: { type: 'note', content } }, signers.alice);
  const { message, signature, address } = JSON.parse(body);
  return { itemHash, text: JSON.stringify({ signed_text: JSON.stringify(message), signature, address }) };
}

interface Written {
  readonly contract: string;
  readonly block: number;
  readonly emitter: string;
  readonly text: string;
  /** What stands there is this, in the place of an archive of the text. */
  readonly content?: string;
}

/** How often a chain was looked at. */
let looks = 0;

/** What the index has of a chain whose blocks are all settled. */
interface Index {
  /** As far as it is read again. */
  readonly coveredTo?: number;
  readonly head?: number;
  readonly isAtTip?: boolean;
  readonly reading?: string;
}

const READINGS = [randomUUID(), randomUUID()] as const;

function readerOf(
  contract: string,
  written: readonly Written[],
  { coveredTo = HEAD, head = HEAD, isAtTip = true, reading = READINGS[0] }: Index = {},
): ChainReader {
  const indexed = { genesisHash: 'genesis', reading };
  return {
    findChain: async () => indexed,
    readEvents: async (fromBlock) => {
      const events = written
        .filter((one) => one.contract === contract && one.block >= fromBlock && one.block <= coveredTo)
        .map(({ block, emitter, text, content = archiveOf([text]).toString() }) => ({
          ...{ blockNumber: block, logIndex: 0, transactionHash: `0x${block}`, timestamp: 1_700_000_000 },
          ...{ name: 'SyncEvent', args: { addr: emitter, message: content } },
        }));
      const read = { readTo: coveredTo, coveredTo, settledTo: coveredTo, isAtTip, head, requests: ++looks };
      return { ...read, ...indexed, events, isCut: false };
    },
  };
}

describe('the operator changes what is followed', () => {
  let database: Database<Schema>;
  let core: TestCore;
  before(async () => {
    database = await createTestDatabase<Schema>({ migrations: MIGRATIONS, log });
    core = await createTestCore({ database });
  });
  after(async () => {
    await core[Symbol.asyncDispose]();
    await database[Symbol.asyncDispose]();
  });

  interface Said {
    readonly contract?: string;
    readonly start_block?: number;
    readonly emitters?: readonly string[];
  }
  /** One look as of a node that was started with these settings. */
  async function lookWith(name: string, written: readonly Written[], said: Said, index?: Index) {
    const { db, ipfs: files, intake } = core.rooms;
    const anchor = { contract: CONTRACT, start_block: 10, emitters: [EMITTER], chain: 'ETH', ...said };
    const network = { name, chain_id: 1, endpoints: ['http://127.0.0.1:1'] };
    const [settings] = parseAnchorSettings({ anchors: [{ ...anchor, network }] }, NO_NETWORKS).anchors;
    const write = createWrite<Schema>(database.pool);
    const signal = new AbortController().signal;
    const common = { ...{ db, write, files, intake, signal, log }, settings: settings!, now: Date.now };
    await forgiveEmitters(common);
    const { look } = await followOnce({ ...common, chain: readerOf(anchor.contract, written, index) });
    return { common, look };
  }

  /** The same, with what is read of archives then. @returns the blocks of events that are read, and what they confirm */
  async function follow(name: string, written: readonly Written[], said: Said, index?: Index) {
    const { common } = await lookWith(name, written, said, index);
    const { db } = common;
    const processor = new Processor({ ...common, random: () => 0 });
    while (await processor.round());
    const events = await db.selectFrom('anchor_events').selectAll().where('network', '=', name).execute();
    const confirmed = await db
      .selectFrom('confirmations')
      .select('item_hash')
      .where('network', '=', name)
      .execute();
    return {
      read: events.flatMap((one) => (one.state === 'processed' ? one.block_number : [])).toSorted(),
      confirmed: confirmed.map((row) => row.item_hash).toSorted(),
    };
  }

  test('an emitter that is added has the archives read that were refused before, and the others stay as they are', async () => {
    const [mine, other] = [post('mine'), post('other')];
    const written = [
      { contract: CONTRACT!, block: 12, emitter: STRANGER, text: other.text },
      { contract: CONTRACT!, block: 13, emitter: EMITTER, text: mine.text },
    ];
    const before = { read: [13], confirmed: [mine.itemHash] };
    assert.deepEqual(await follow('emitters', written, {}), before);
    assert.deepEqual(await follow('emitters', written, {}), before);
    const after = await follow('emitters', written, { emitters: [EMITTER, STRANGER] });
    assert.deepEqual(after, { read: [12, 13], confirmed: [mine.itemHash, other.itemHash].toSorted() });
    const told = await core.rooms.db
      .selectFrom('events')
      .selectAll()
      .where('kind', '=', 'message_unconfirmed')
      .execute();
    assert.deepEqual(told, []);
  });

  test('with an earlier start what was left out is read, once the chain is read up to where it was', async () => {
    const [early, late] = [post('early'), post('late')];
    const written = [
      { contract: CONTRACT!, block: 5, emitter: EMITTER, text: early.text },
      { contract: CONTRACT!, block: 13, emitter: EMITTER, text: late.text },
    ];
    const before = { read: [13], confirmed: [late.itemHash] };
    assert.deepEqual(await follow('start', written, {}), before);
    assert.deepEqual(await follow('start', written, { start_block: 3 }, { coveredTo: 8 }), before);
    const after = await follow('start', written, { start_block: 3 });
    assert.deepEqual(after, { read: [13, 5], confirmed: [early.itemHash, late.itemHash].toSorted() });
  });

  test('a chain that is read anew, since an endpoint had lied, is compared from the start once it is read up to where it was', async () => {
    const [untrue, hidden, late] = [post('false'), post('hidden'), post('late')];
    const at = (block: number, { text }: { text: string }) => ({
      ...{ contract: CONTRACT!, block, emitter: EMITTER, text },
    });
    const before = await follow('anew', [at(12, untrue), at(14, late)], {});
    assert.deepEqual(before.read, [12, 14]);
    const chain = [at(11, hidden), at(14, late)];
    assert.deepEqual(await follow('anew', chain, {}), before, 'what is settled is not looked at');
    const again = { reading: READINGS[1] };
    assert.deepEqual(await follow('anew', chain, {}, { ...again, coveredTo: HEAD - 1 }), before);
    const waiting = await lookWith('anew', chain, {}, { ...again, coveredTo: HEAD - 1 });
    assert.deepEqual(
      [waiting.look?.isAnew, waiting.look?.isCut],
      [true, true],
      'nothing is packed meanwhile',
    );
    const after = { read: [11, 14], confirmed: [hidden.itemHash, late.itemHash].toSorted() };
    assert.deepEqual(await follow('anew', chain, {}, again), after);
    const { look } = await lookWith('anew', chain, {}, again);
    assert.equal(look?.isAnew, false);
  });

  test('a chain that is shorter since it is read anew is compared once it is read whole', async () => {
    const one = post('stays');
    const chain = [{ contract: CONTRACT!, block: 12, emitter: EMITTER, text: one.text }];
    const untrue = { contract: CONTRACT!, block: HEAD, emitter: EMITTER, text: post('above the head').text };
    assert.deepEqual((await follow('shorter', [...chain, untrue], {})).read, [12, HEAD]);
    const again = { reading: READINGS[1], head: HEAD - 5 };
    const early = { ...again, coveredTo: HEAD - 6 };
    assert.deepEqual((await follow('shorter', chain, {}, early)).read, [12, HEAD]);
    const lagging = { ...again, coveredTo: HEAD - 4, isAtTip: false };
    assert.deepEqual(
      (await follow('shorter', chain, {}, lagging)).read,
      [12, HEAD],
      'a head alone says little',
    );
    const after = await follow('shorter', chain, {}, { ...again, coveredTo: HEAD - 5 });
    assert.deepEqual(after, { read: [12], confirmed: [one.itemHash] });
  });

  test('an archive that was settled in a block that is another one now is open again, and keeps its transaction', async () => {
    const { db } = core.rooms;
    const network = 'settled';
    const cid = 'QmT78zSuBmuS4z925WZfrqQ1qHaJ56DQaTfyMUF7F8ff5o';
    const at = (block: number) => ({
      ...{ contract: CONTRACT!, block, emitter: EMITTER, text: '', content: syncContentOf(cid) },
    });
    await lookWith(network, [at(15)], {});
    await notePacked(db, network, { after: 0, seq: 1 }, { cid, messages: 1 }, 1);
    const [sent] = await listOpen(db, network);
    await noteSent(db, sent!, { hash: '0x15', nonce: 7, maxFee: 1n }, 1);
    await db
      .updateTable('anchor_events')
      .set({ state: 'processed' })
      .where('network', '=', network)
      .execute();
    await settlePacked(db, network, HEAD);
    assert.deepEqual(await listOpen(db, network), []);
    await lookWith(network, [at(14)], {}, { reading: READINGS[1] });
    const [open] = await listOpen(db, network);
    assert.deepEqual([open?.block, open?.transactionHash, open?.isRead], [14, '0x15', false]);
    await db.deleteFrom('packed_archives').where('network', '=', network).execute();
  });

  test('with another contract its events are read from the start, those of the old one go, and archives are sent again', async () => {
    const { db } = core.rooms;
    const [old, moved] = [post('old'), post('moved')];
    const written = [
      { contract: CONTRACT!, block: 13, emitter: EMITTER, text: old.text },
      { contract: OTHER!, block: 11, emitter: EMITTER, text: moved.text },
    ];
    assert.deepEqual(await follow('contract', written, {}), { read: [13], confirmed: [old.itemHash] });
    await notePacked(db, 'contract', { after: 0, seq: 1 }, { cid: 'Qm', messages: 1 }, 1);
    const [sent] = await listOpen(db, 'contract');
    await noteSent(db, sent!, { hash: '0x1', nonce: 7, maxFee: 1n }, 1);
    const after = await follow('contract', written, { contract: OTHER! });
    assert.deepEqual(after, { read: [11], confirmed: [moved.itemHash] });
    assert.equal((await listOpen(db, 'contract'))[0]?.transactionHash, null);
  });

  test('with the contract of before an archive that is on it is not paid again, however far the chain is read at first', async () => {
    const { db, ipfs: files } = core.rooms;
    const cid = 'QmT78zSuBmuS4z925WZfrqQ1qHaJ56DQaTfyMUF7F8ff5o';
    const network = 'back';
    const sent = { contract: CONTRACT!, block: 15, emitter: EMITTER, text: '', content: syncContentOf(cid) };
    await lookWith(network, [sent], {});
    await notePacked(db, network, { after: 0, seq: 1 }, { cid, messages: 1 }, 1);
    const catchUp = new CatchUp();
    const paid: string[] = [];
    let contract = '';
    const packer = new Packer({
      ...{ db, files, network, log, isCaughtUp: () => catchUp.isDone, now: () => 1_000_000 },
      settings: { keyFile: '', intervalMs: 1e9, messagesMax: 1, maxFeeGwei: 1, resendMs: 1 },
      signal: new AbortController().signal,
      emitter: {
        look: async () => ({ receipt: 'none', count: 0 }),
        prepare: async (_content, { nonce }) => ({ raw: contract, hash: `0x${nonce}`, nonce, maxFee: 1n }),
        send: async (raw) => void paid.push(raw),
      },
    });
    /** As far as the chain is read of the contract. */
    const lookAt = async (where: string, coveredTo: number) => {
      contract = where;
      const { look } = await lookWith(network, [sent], { contract }, { coveredTo });
      catchUp.note(look!);
      await packer.round();
    };
    await lookAt(OTHER!, HEAD);
    await lookAt(OTHER!, HEAD);
    assert.deepEqual(paid, [OTHER]);
    await lookAt(CONTRACT!, 12);
    await lookAt(CONTRACT!, HEAD - 1);
    await lookAt(CONTRACT!, HEAD);
    await lookAt(CONTRACT!, HEAD);
    assert.deepEqual(paid, [OTHER]);
    await db.deleteFrom('packed_archives').where('network', '=', network).execute();
  });

  test('events that a release before refused because a stranger had named their values are read after the migration', async () => {
    const posts = [post('no emitter'), post('another text for it'), post('no text'), post('fine')];
    const written = posts.map(({ text }, at) => ({
      contract: CONTRACT!,
      block: 11 + at,
      emitter: EMITTER,
      text,
    }));
    const misread = written.map((one, at) => ({
      ...one,
      emitter: ['', '{"protocol":"aleph"}'][at] ?? one.emitter,
      text: at === 2 ? 'no JSON' : one.text,
    }));
    const before = { read: [14], confirmed: [posts[3]!.itemHash] };
    assert.deepEqual(await follow('names', misread, {}), before);
    assert.deepEqual(await follow('names', written, {}), before);
    await database.pool.query(
      await readFile(join(MIGRATIONS, '037-events-of-anchors-by-other-names.sql'), 'utf8'),
    );
    const confirmed = posts.map(({ itemHash }) => itemHash).toSorted();
    assert.deepEqual(await follow('names', written, {}), { read: [11, 12, 13, 14], confirmed });
  });
});
