import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createWrite } from '@skerry/database';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { CID } from 'multiformats/cid';
import { sha256 } from 'multiformats/hashes/sha2';
import { TestDaemon } from '../../store/ipfs/testing/daemon.ts';
import { createTestCore } from '../../testing/core.ts';
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

test('F2: archives that cannot be had are put off, and hold up none of those behind them', async () => {
  await using stack = new AsyncDisposableStack();
  const daemon = stack.use(await TestDaemon.start());
  const log = createLogger('core', 'fatal');
  const core = stack.use(await createTestCore({ ipfs: { gateways: [daemon.url] } }));
  const { db, ipfs, intake } = core.rooms;
  const lost = await Promise.all(['nobody', 'has', 'these', 'archives'].map(cidOf));
  const good = await cidOf(archiveOf([]).toString());
  daemon.put(good.bytes);
  for (const [at, { cid }] of [...lost, good].entries()) {
    const content = syncContentOf(cid);
    const place = { blockNumber: at + 1, logIndex: 0, transactionHash: `0x${at}` };
    const blockTime = Math.floor(Date.now() / 1000);
    const event = {
      ...place,
      blockTime,
      network: NETWORK,
      emitter: '0x00',
      content,
      cid,
      refusal: undefined,
    };
    await insertEvent(db, event, Date.now());
  }
  const stop = new AbortController();
  const settings = {
    network: { name: NETWORK },
    chain: 'ETH',
    archiveHorizonMs: 604_800_000,
  } as unknown as AnchorSettings;
  const processor = new Processor({
    db,
    write: createWrite(core.rooms.indexer.pool),
    files: ipfs,
    intake,
    settings,
    now: Date.now,
    random: Math.random,
    signal: stop.signal,
    log,
  });
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
