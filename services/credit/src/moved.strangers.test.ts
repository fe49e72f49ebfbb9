import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { serving } from '@skerry/kit/testing/serving';
import type { Purchase } from './purchase.ts';
import { PurchaseStore } from './purchase-store.ts';
import { Purchases } from './purchases.ts';
import { parseSales, type Sale } from './sales.ts';
import { Seller, type SellingNetwork } from './seller.ts';

const log = createLogger('credit', 'silent');
const BUYER = `0x${'ab'.repeat(20)}`;
const OTHER = `0x${'ef'.repeat(20)}`;
const RECEIVER = `0x${'cd'.repeat(20)}`;
const CONTRACT = `0x${'01'.repeat(20)}`;
const TOKEN = { symbol: 'USDC', contract: CONTRACT, decimals: 6, credits_per_token: 1_000_000 };
const [SALE] = parseSales({
  networks: [{ name: 'ethereum', chain: 'ETH', chain_id: 1, receiver: RECEIVER, tokens: [TOKEN] }],
}) as [Sale];
const HEAD = 100;

/** A transfer of one transaction. */
interface Sent {
  readonly block: number;
  readonly log: number;
  readonly from?: string;
  readonly value?: string;
  readonly transaction?: number;
}

const hashOf = (number = 1) => `0x${number.toString(16).padStart(64, '0')}`;

const eventOf = ({ block, log: index, from = BUYER, value = '5', transaction }: Sent) => ({
  transaction_hash: hashOf(transaction),
  block_number: block,
  log_index: index,
  contract: CONTRACT,
  event_name: 'Transfer',
  event_signature: 'Transfer(address,address,uint256)',
  event_parameters: ['from', 'to', 'value'],
  args: { from, to: RECEIVER, value },
  timestamp: block,
});

/** A service whose core node has these transfers in final blocks; it starts from the journal, with nothing scanned. */
async function openService(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), 'skerry-credit-moved-'));
  t.after(() => rm(dir, { recursive: true }));
  let chain: readonly Sent[] = [];
  const core = await serving((_request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify({
        // Newest first.
        events: chain.map(eventOf).toReversed(),
        pagination: { total: chain.length, page: 1, per_page: 100, total_pages: 1, total_is_exact: true },
        cursor: null,
        coverage: [{ contract: CONTRACT, kind: 'events', from_block: 0, to_block: HEAD, live: true }],
        ...{ head: HEAD, finalized: HEAD, indexed: HEAD, lag: 0, state: 'live' },
      }),
    );
  });
  t.after(() => core[Symbol.asyncDispose]());
  const credited: string[] = [];
  const network: SellingNetwork = {
    coreUrl: core.url,
    checkChain: async () => {},
    askForIndex: async () => 'h',
    findIndexRefusal: async () => undefined,
    findCredit: async ({ id }) => (credited.includes(id) ? 'h' : undefined),
    sendPurchase: async ({ id }: Purchase) => void credited.push(id),
  };
  /** @returns log indices of what was credited by this look */
  return async (...sent: readonly Sent[]): Promise<number[]> => {
    chain = sent;
    const before = credited.length;
    const { store, records } = await PurchaseStore.open(dir, log);
    const purchases = new Purchases(records.purchases, records.settlements);
    const { signal } = new AbortController();
    const seller = new Seller({
      ...{ sales: [SALE], network, store, purchases, scanned: {}, now: () => 1, signal, log },
    });
    await seller.runRound();
    assert.deepEqual(seller.troubles, []);
    return credited.slice(before).map((id) => Number(id.split('/').at(-1)));
  };
}

test('a transfer that the chain has in another block now is not credited again, under whatever number of its log', async (t) => {
  const look = await openService(t);
  assert.deepEqual(await look({ block: 10, log: 1 }), [1]);
  assert.deepEqual(await look({ block: 11, log: 0 }), []);
  assert.deepEqual(await look({ block: 12, log: 7 }), []);
  assert.deepEqual(await look({ block: 12, log: 7 }, { block: 13, log: 7, transaction: 2 }), [7]);
});

test('of equal transfers of one transaction each is credited, and each once', async (t) => {
  const look = await openService(t);
  const three = (block: number, first: number) => [0, 1, 2].map((more) => ({ block, log: first + more }));
  assert.deepEqual(await look(...three(10, 4)), [4, 5, 6]);
  assert.deepEqual(await look(...three(10, 4)), []);
  // Some numbers are those of others before.
  assert.deepEqual(await look(...three(11, 5)), []);
  // In its new block the transaction did more.
  assert.deepEqual(await look(...three(12, 2), { block: 12, log: 9 }), [9]);
});

test('what a transaction did in its new block alone is credited', async (t) => {
  const look = await openService(t);
  await look({ block: 10, log: 1 });
  const moved = [
    { block: 11, log: 0 },
    { block: 11, log: 2, from: OTHER },
    { block: 11, log: 3, value: '6' },
  ];
  assert.deepEqual(await look(...moved), [2, 3]);
});

test('a journal that was cut off amid a transaction has the rest of it credited', async (t) => {
  const look = await openService(t);
  assert.deepEqual(await look({ block: 10, log: 1 }), [1]);
  assert.deepEqual(await look({ block: 10, log: 1 }, { block: 10, log: 2 }), [2]);
});
