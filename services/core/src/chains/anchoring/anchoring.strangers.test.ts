import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createWallet, signMessage } from '@skerry/client';
import { RpcPool } from '@skerry/indexer';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { sql } from 'kysely';
import { signers } from '../../testing/core.ts';
import { archiveOf } from './archive.ts';
import { Emitter } from './emitter.ts';
import { decidePlace } from './place.ts';
import { areRight, createAnchoredCore, FUNDED_KEY, sendPosts, TestChain } from './testing/setup.ts';

const { address } = createWallet(FUNDED_KEY);

const countOf = async (chain: TestChain, at: 'latest' | 'pending') =>
  Number(await chain.anvil.call<string>('eth_getTransactionCount', address, at));

/** The nonces of the key's transactions that wait for a block. */
async function waitingNonces(chain: TestChain): Promise<number[]> {
  const pool = await chain.anvil.call<Record<'pending' | 'queued', Record<string, object>>>('txpool_content');
  return [pool.pending, pool.queued]
    .flatMap((part) => Object.entries(part))
    .filter(([from]) => from.toLowerCase() === address)
    .flatMap(([, byNonce]) => Object.keys(byNonce).map(Number));
}

test('F11: packing goes on when a reorganisation takes the transaction below an archive away', async () => {
  await using chain = await TestChain.start();
  // Of the same key, and nobody sends it again.
  await chain.emit('garbage');
  await chain.anvil.mine();
  const gap = (await countOf(chain, 'latest')) - 1;
  await using node = await createAnchoredCore(await chain.settings({ packs: true }));
  const hashes = await sendPosts(node.core, 3);
  await until(
    'an archive waits for a block',
    () => waitingNonces(chain),
    (nonces) => nonces.includes(gap + 1),
  );
  await chain.anvil.reorg(1);
  assert.equal(await countOf(chain, 'latest'), gap);
  await until('the messages are confirmed', async () => {
    await chain.anvil.mine();
    return areRight(chain, node.core, hashes);
  });
});

test('F11: an archive that the chain forgot at the highest fee that is allowed is sent again', async () => {
  await using chain = await TestChain.start();
  {
    // Above it the loop fails: it rests longer and longer, and does not say so every second.
    const stop = new AbortController();
    const log = createLogger('test', 'silent');
    const pool = { timeoutMs: 60_000, restAfterLieMs: 1, now: Date.now, log, signal: stop.signal };
    const emitter = new Emitter({
      ...{ rpc: new RpcPool({ ...pool, urls: [chain.anvil.url] }), wallet: createWallet(FUNDED_KEY) },
      ...{ chainId: 31_337, contract: chain.contract, maxFeeGwei: 0 },
    });
    const tooDear = { code: 'UPSTREAM_UNAVAILABLE', message: /max_fee_gwei/ };
    await assert.rejects(emitter.prepare('{}', { minimumFee: 0n, nonce: 0 }), tooDear);
    stop.abort();
  }
  await using node = await createAnchoredCore(await chain.settings({ packs: true, maxFeeGwei: 3 }));
  const hashes = await sendPosts(node.core, 3);
  const sends = async () =>
    (await node.core.rooms.db.selectFrom('packed_archives').selectAll().executeTakeFirst())?.sends ?? 0;
  await until(
    'an archive waits for a block',
    () => waitingNonces(chain),
    ({ length }) => length > 0,
  );
  await until('it was sent again', sends, (count) => count > 1);
  await chain.anvil.call('anvil_dropAllTransactions');
  await until('the messages are confirmed', async () => {
    if ((await waitingNonces(chain)).length > 0) await chain.anvil.mine();
    return areRight(chain, node.core, hashes);
  });
});

function archived(timestamp: number) {
  const { body, itemHash } = signMessage(
    { type: 'POST', content: { type: 'note', content: timestamp }, timestamp },
    signers.bob,
  );
  const { signature, address: sender } = JSON.parse(body) as { signature: string; address: string };
  const signedText = /^\{"message":(.*),"signature"/s.exec(body)![1]!;
  return { itemHash, text: JSON.stringify({ signed_text: signedText, signature, address: sender }) };
}

test('F3: an archive confirms what is ahead of the clock when its time comes, and the rest at once', async () => {
  await using chain = await TestChain.start();
  let aheadMs = 0;
  await using node = await createAnchoredCore(await chain.settings({ horizonSeconds: 86_400 }), {
    now: () => Date.now() + aheadMs,
  });
  const nowSeconds = Math.floor(Date.now() / 1000);
  const [due, later] = [archived(nowSeconds), archived(nowSeconds + 3_600)];
  await chain.emit(archiveOf([due.text, later.text]).toString());
  await chain.anvil.mine();
  await until('what is due is confirmed', () => areRight(chain, node.core, [due.itemHash]));
  const eventOf = () => node.core.rooms.db.selectFrom('anchor_events').selectAll().executeTakeFirstOrThrow();
  const waiting = await eventOf();
  assert.deepEqual([waiting.state, waiting.reason?.code], ['waiting', 'TIMESTAMP_IN_FUTURE']);
  assert.equal(node.anchoring.invalid, 0);
  aheadMs = 3_600_000;
  await until('the other one, too', () => areRight(chain, node.core, [due.itemHash, later.itemHash]));
  await until('the archive is read', eventOf, ({ state }) => state === 'processed');
  const { rows } = await sql<{ hash: string }>`
    select data ->> 'item_hash' as hash from events where kind = 'message_confirmed' order by seq`.execute(
    node.core.rooms.db,
  );
  assert.deepEqual(
    rows.map(({ hash }) => hash),
    [due.itemHash, later.itemHash],
    'each is told once',
  );
});

test('F11: an archive goes to the lowest nonce that the chain can take and no other archive has', () => {
  const none = new Set<number>();
  const seen = (count: number, receipt: 'none' | 'succeeded' | 'reverted' = 'none') => ({ receipt, count });
  assert.deepEqual(decidePlace(null, none, seen(4)), { nonce: 4, isTaken: false });
  assert.deepEqual(decidePlace(4, none, seen(4)), { nonce: 4, isTaken: true });
  assert.deepEqual(decidePlace(6, none, seen(4)), { nonce: 4, isTaken: false }, 'nobody fills the gap');
  assert.deepEqual(decidePlace(6, new Set([4, 5]), seen(4)), { nonce: 6, isTaken: true }, 'others fill it');
  assert.deepEqual(decidePlace(4, new Set([4]), seen(4)), { nonce: 5, isTaken: false }, 'not over another');
  assert.deepEqual(decidePlace(4, none, seen(7)), { nonce: 7, isTaken: false }, 'another took its nonce');
  assert.deepEqual(decidePlace(4, none, seen(5, 'reverted')), { nonce: 5, isTaken: false });
  assert.equal(decidePlace(4, none, seen(5, 'succeeded')), undefined);
});
