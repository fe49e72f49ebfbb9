import assert from 'node:assert/strict';
import { test } from 'node:test';
import { messageArchive } from '@skerry/contracts';
import { BOUNDLESS, createWrite } from '@skerry/database';
import { loadIndexerSettings } from '@skerry/indexer';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { AppError, keccak256 } from '@skerry/protocol';
import { createTestCore } from '../../testing/core.ts';
import { startAnchoring } from './anchoring.ts';
import { watchAnchoring } from './metrics.ts';
import { parseAnchorSettings } from './settings.ts';
import { areRight, confirmationsOf, createAnchoredCore, sendPosts, TestChain } from './testing/setup.ts';

test('the contract has the events and functions of deployed networks', () => {
  const topic = (text: string) => Buffer.from(keccak256(Buffer.from(text))).toString('hex');
  const signatures = (messageArchive.abi as { type: string; name: string; inputs: { type: string }[] }[]).map(
    ({ type, name, inputs }) => [type, topic(`${name}(${inputs.map((one) => one.type).join(',')})`)],
  );
  assert.deepEqual(
    Object.fromEntries(signatures.map(([type, hash]) => [`${type} ${hash!.slice(0, 8)}`, hash!.slice(0, 8)])),
    {
      'event 2cc768a3': '2cc768a3',
      'event 548eda6c': '548eda6c',
      'function 58666c04': '58666c04',
      'function 128f72c5': '128f72c5',
    },
  );
});

test('a network that only the anchor file names takes requests for contracts within the usual limits', async () => {
  const address = `0x${'a1'.repeat(20)}`;
  const network = { name: 'anvil', chain_id: 31337, endpoints: ['http://127.0.0.1:9'] };
  const anchor = { network, chain: 'ETH', contract: address, emitters: [address] };
  const { indexer } = parseAnchorSettings({ anchors: [anchor] }, await loadIndexerSettings(undefined));
  const { networks, ...limits } = indexer;
  assert.deepEqual(
    networks.map(({ name }) => name),
    ['anvil'],
  );
  assert.deepEqual(limits, {
    ...{ watchesPerOwner: 20, watchesMax: 1_000, exemptOwners: [], standingCredits: 5_000_000 },
    decodeThreads: 1,
  });
});

test('a loop that fails and begins anew is counted', async () => {
  const address = `0x${'a1'.repeat(20)}`;
  const network = { name: 'anvil', chain_id: 31337, endpoints: ['http://127.0.0.1:9'] };
  const anchor = { network, chain: 'ETH', contract: address, emitters: [address], poll_ms: 20 };
  const { anchors } = parseAnchorSettings({ anchors: [anchor] }, await loadIndexerSettings(undefined));
  await using core = await createTestCore();
  const { rooms } = core;
  const { pool } = rooms.indexer;
  const take = () => {
    throw new AppError('STORAGE_FULL', 'the disk is full');
  };
  await using anchoring = await startAnchoring({
    ...{ ...rooms, pool, write: createWrite(pool), files: rooms.ipfs, anchors },
    reserve: { ...BOUNDLESS, take },
    log: createLogger('core', 'silent'),
  });
  const { metrics, db } = rooms;
  watchAnchoring(metrics, { db, pool, anchors, invalid: () => 0, restarts: () => anchoring.restarts });
  await until(
    'both have failed',
    () => metrics.text(),
    (text) =>
      ['follow', 'archives'].every((loop) =>
        new RegExp(`skerry_anchor_restarts_total\\{loop="${loop}"\\} [1-9]`).test(text),
      ),
  );
});

test('messages are packed, confirmed on every node, and confirmed right again after reorganisations', async (t) => {
  await using chain = await TestChain.start();
  await using packer = await createAnchoredCore(await chain.settings({ packs: true }));
  // The other node has never seen the messages: it gets them from the archives.
  await using reader = await createAnchoredCore(await chain.settings(), {
    ipfs: { gateways: [`${packer.url}/api/v0`] },
  });
  const hashes = await sendPosts(packer.core, 120);
  const mineUntil = (what: string, isSo: () => Promise<boolean>) =>
    until(what, async () => {
      await chain.anvil.mine();
      return isSo();
    });
  const bothRight = async () =>
    (await areRight(chain, packer.core, [hashes[0]!, hashes.at(-1)!])) &&
    (await areRight(chain, reader.core, [hashes[0]!, hashes.at(-1)!]));
  await mineUntil('everything is confirmed on both', bothRight);
  assert.ok(await areRight(chain, packer.core, hashes));
  assert.ok(await areRight(chain, reader.core, hashes));
  const [first] = await confirmationsOf(reader.core, hashes[0]!);
  assert.equal(first!.chain, 'ETH');
  const listed = await reader.core.get('/messages.json?pagination=1');
  assert.equal(listed.body.messages[0].confirmed, true);
  assert.deepEqual(listed.body.messages[0].confirmations.length, 1);

  for (const depth of [40]) {
    const missing = first!.height + depth - 1 - (await chain.anvil.head());
    if (missing > 0) await chain.anvil.mine(missing);
    const replaced = (await chain.anvil.head()) - first!.height + 1;
    await chain.anvil.reorg(replaced);
    const startMs = performance.now();
    await until(
      'what is not on the chain is not confirmed',
      () => confirmationsOf(reader.core, hashes[0]!),
      ([now]) => now?.hash !== first!.hash,
    );
    const undoneMs = performance.now() - startMs;
    await mineUntil('and then again', bothRight);
    assert.ok(await areRight(chain, packer.core, hashes));
    assert.ok(await areRight(chain, reader.core, hashes));
    t.diagnostic(
      `reorganisation of ${replaced} blocks: undone after ${Math.round(undoneMs)} ms, right again after ${Math.round(performance.now() - startMs)} ms`,
    );
    const events = await reader.core.get('/events?limit=100&cursor=0');
    assert.equal(events.status, 200);
    const rows = await reader.core.rooms.db
      .selectFrom('events')
      .select(({ fn }) => fn.countAll<number>().as('n'))
      .where('kind', '=', 'message_unconfirmed')
      .executeTakeFirstOrThrow();
    assert.ok(Number(rows.n) >= 120, `${rows.n} taken back`);
  }
  const metrics = (await reader.core.rooms.metrics.json()) as Record<string, unknown>;
  assert.equal(metrics.pyaleph_status_sync_pending_txs_total ?? 0, 0);
});
