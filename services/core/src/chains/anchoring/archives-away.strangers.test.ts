import assert from 'node:assert/strict';
import { test } from 'node:test';
import { signMessage } from '@skerry/client';
import { createWrite } from '@skerry/database';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { CID } from 'multiformats/cid';
import { sha256 } from 'multiformats/hashes/sha2';
import { TestDaemon } from '../../store/ipfs/testing/daemon.ts';
import { SCHEMA_VERSION } from '../../store/schema-version.ts';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import { archiveOf, syncContentOf } from './archive.ts';
import { Processor } from './processor.ts';
import type { AnchorSettings } from './settings.ts';
import { insertEvent } from './store.ts';

const NETWORK = 'somewhere';

const RAW = 0x55;

async function cidOf(text: string): Promise<{ cid: string; bytes: Uint8Array }> {
  const bytes = Buffer.from(text);
  return { cid: CID.createV1(RAW, await sha256.digest(bytes)).toString(), bytes };
}

function openProcessor(core: TestCore): Processor {
  const settings = {
    network: { name: NETWORK },
    chain: 'ETH',
    archiveHorizonMs: 604_800_000,
  } as unknown as AnchorSettings;
  return new Processor({
    db: core.rooms.db,
    write: createWrite(core.rooms.indexer.pool),
    files: core.rooms.ipfs,
    intake: core.rooms.intake,
    settings,
    now: Date.now,
    random: () => 0,
    signal: new AbortController().signal,
    log: createLogger('core', 'fatal'),
  });
}

/** Of a contract's event that names an archive. */
const eventOf = (cid: string, at: number) => ({
  ...{ blockNumber: at, logIndex: 0, transactionHash: `0x${at}` },
  ...{ blockTime: Math.floor(Date.now() / 1000), network: NETWORK, emitter: '0x00' },
  ...{ content: syncContentOf(cid), cid, refusal: undefined },
});

test('F2: archives that cannot be had are put off, and hold up none of those behind them', async () => {
  await using stack = new AsyncDisposableStack();
  const daemon = stack.use(await TestDaemon.start());
  const core = stack.use(await createTestCore({ ipfs: { gateways: [daemon.url] } }));
  const { db } = core.rooms;
  const lost = await Promise.all(['nobody', 'has', 'these', 'archives'].map(cidOf));
  const good = await cidOf(archiveOf([]).toString());
  daemon.put(good.bytes);
  for (const [at, { cid }] of [...lost, good].entries())
    await insertEvent(db, eventOf(cid, at + 1), Date.now());
  const processor = openProcessor(core);
  const stateOf = async () =>
    db.selectFrom('anchor_events').select(['state', 'attempts', 'due_ms']).orderBy('block_number').execute();
  const round = async () => {
    await processor.round();
    return stateOf();
  };
  await until('the last one is read', round, (states) => states.at(-1)!.state === 'processed');
  for (const { state, attempts, due_ms } of (await stateOf()).slice(0, -1)) {
    assert.equal(state, 'waiting');
    assert.ok(attempts >= 1 && Number.isInteger(due_ms), `${attempts} attempts, due at ${due_ms}`);
  }
});

test('an archive that this node cannot write now is read later: a newer release beside it made it refused for good', async () => {
  await using stack = new AsyncDisposableStack();
  const daemon = stack.use(await TestDaemon.start());
  const core = stack.use(await createTestCore({ ipfs: { gateways: [daemon.url] } }));
  const { db } = core.rooms;
  const draft = { type: 'POST', content: { type: 'note', content: 'archived' } };
  const { message, signature, address } = JSON.parse(signMessage(draft, signers.alice).body);
  const archived = JSON.stringify({ signed_text: JSON.stringify(message), signature, address });
  const { cid, bytes } = await cidOf(archiveOf([archived]).toString());
  daemon.put(bytes);
  const dueMs = Date.now();
  await insertEvent(db, eventOf(cid, 1), dueMs);
  const migrateTo = (version: number) =>
    db.updateTable('event_counter').set({ schema_version: version }).execute();
  const round = async () => {
    await openProcessor(core).round();
    return db.selectFrom('anchor_events').select(['state', 'messages']).executeTakeFirstOrThrow();
  };
  await migrateTo(SCHEMA_VERSION + 1);
  assert.equal((await round()).state, 'waiting');
  await migrateTo(SCHEMA_VERSION);
  await db.updateTable('anchor_events').set({ due_ms: dueMs }).execute();
  assert.deepEqual(await round(), { state: 'processed', messages: 1 });
});
