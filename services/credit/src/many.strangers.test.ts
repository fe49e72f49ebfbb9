import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { CoreClient } from '@skerry/client';
import { createLogger } from '@skerry/kit';
import { serving } from '@skerry/kit/testing/serving';
import { AppError, type CreditState, type InstanceView, LIMITS } from '@skerry/protocol';
import type { AccountView } from '@skerry/protocol/api/core/credits';
import { Network } from './network.ts';
import { quoteTransfer } from './purchase.ts';
import { type Progress, PurchaseStore } from './purchase-store.ts';
import { Purchases } from './purchases.ts';
import { parseSales, placeOf, type Sale } from './sales.ts';
import { Seller, type SellingNetwork } from './seller.ts';
import { readTransfers } from './transfers.ts';
import { type WatchedNetwork, Watcher } from './watcher.ts';

const log = createLogger('credit', 'silent');
const BUYER = `0x${'ab'.repeat(20)}`;
const RECEIVER = `0x${'cd'.repeat(20)}`;
const CONTRACT = `0x${'01'.repeat(20)}`;
const TOKEN = { symbol: 'USDC', contract: CONTRACT, decimals: 6, credits_per_token: 1_000_000 };
const [SALE] = parseSales({
  networks: [{ name: 'ethereum', chain: 'ETH', chain_id: 1, receiver: RECEIVER, tokens: [TOKEN] }],
}) as [Sale];
const FINAL_DEPTH = 8;

const hashOf = (number: number) => `0x${number.toString(16).padStart(64, '0')}`;

/** What a chain has on which somebody sends the receiver so many transfers of next to nothing in each block. */
interface Crowd {
  readonly head: number;
  readonly perBlock: number;
  /** Smallest units of the token; one where left out. */
  readonly value?: string;
  /** Of the index; `live` where left out. */
  readonly state?: string;
  /** Names of the arguments of Transfer, in its order. */
  readonly names: readonly string[];
}

/** A page of an index of that chain, as a core node answers it. */
function pageOf({ head, perBlock, names, value = '1', state = 'live' }: Crowd, query: URLSearchParams) {
  const [from, to, limit] = ['from_block', 'to_block', 'limit'].map((name) => Number(query.get(name)));
  const offset = Number(query.get('cursor') ?? 0);
  const total = Math.max(0, Math.min(to!, head) - from! + 1) * perBlock;
  const count = Math.min(limit!, total - offset);
  const events = Array.from({ length: count }, (_, row) => {
    const place = total - 1 - offset - row;
    const block = from! + Math.floor(place / perBlock);
    return {
      transaction_hash: hashOf(block),
      block_number: block,
      log_index: place % perBlock,
      contract: CONTRACT,
      event_name: 'Transfer',
      event_signature: 'Transfer(address,address,uint256)',
      event_parameters: names,
      args: { from: BUYER, to: RECEIVER, value },
      timestamp: block,
    };
  });
  return {
    events,
    pagination: { total, page: 1, per_page: limit, total_pages: 1, total_is_exact: true },
    cursor: offset + count < total ? String(offset + count) : null,
    coverage: [{ contract: CONTRACT, kind: 'events', from_block: 0, to_block: head, live: true }],
    ...{ head, finalized: head - FINAL_DEPTH, indexed: head, lag: 0, state },
  };
}

async function serveCrowd(crowd: Crowd) {
  let asked = 0;
  const served = await serving((request, response) => {
    asked++;
    const { searchParams } = new URL(request.url!, 'http://localhost');
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(pageOf(crowd, searchParams)));
  });
  return {
    ...served,
    get asked() {
      return asked;
    },
  };
}

const NAMES = ['from', 'to', 'value'];

/** A seller of a core node that indexes such a chain. */
async function startSeller(t: TestContext, crowd: Omit<Crowd, 'names'>, sale = SALE) {
  const dir = await mkdtemp(join(tmpdir(), 'skerry-credit-many-'));
  t.after(() => rm(dir, { recursive: true }));
  const core = await serveCrowd({ ...crowd, names: NAMES });
  t.after(() => core[Symbol.asyncDispose]());
  const { store } = await PurchaseStore.open(dir, log);
  const network: SellingNetwork = {
    coreUrl: core.url,
    checkChain: async () => {},
    askForIndex: async () => 'h',
    findIndexRefusal: async () => undefined,
    findCredit: async () => undefined,
    sendPurchase: async () => {},
  };
  const { signal } = new AbortController();
  const purchases = new Purchases([], []);
  const seller = new Seller({
    ...{ sales: [sale], network, store, purchases, scanned: {}, now: () => 1, signal, log },
  });
  const readRecords = async () => (await PurchaseStore.open(dir, log)).records;
  return { core, purchases, seller, readRecords };
}

describe('transfers', () => {
  test('more than one look can hold are read in smaller parts, each from where the one before ended', async () => {
    const crowd = { head: 4_000, perBlock: 30, names: NAMES };
    await using core = await serveCrowd(crowd);
    const read = async (from: number) => (await readTransfers(core.url, SALE, from, {}))!;
    const first = await read(1);
    assert.ok(first.finalBlock > 1 && first.finalBlock < crowd.head, `read to ${first.finalBlock}`);
    assert.equal(first.final.length, first.finalBlock * crowd.perBlock);
    assert.deepEqual([first.fresh, first.final[0]?.blockNumber], [[], 1]);
    const last = await read(crowd.head - FINAL_DEPTH - 1);
    assert.equal(last.finalBlock, crowd.head - FINAL_DEPTH);
    assert.deepEqual(
      [last.final.length, last.fresh.length],
      [2 * crowd.perBlock, FINAL_DEPTH * crowd.perBlock],
    );
  });

  test('what is beyond a smaller part was not looked at: it is not cancelled', async () => {
    const crowd = { head: 4_000, perBlock: 0, names: NAMES };
    const purchases = new Purchases([], []);
    // The newest block's; no transfer of the crowd's is the same.
    const transfer = { transactionHash: hashOf(9_999), logIndex: 0, blockNumber: crowd.head, timestamp: 1 };
    const bought = quoteTransfer({ ...transfer, from: BUYER, amount: 1_000_000n }, SALE);
    purchases.setFresh(SALE, { purchases: [bought], toBlock: crowd.head }, 1);
    const status = () => purchases.list(BUYER, 1, 1).records[0]?.status;
    const look = async (perBlock: number) => {
      await using core = await serveCrowd({ ...crowd, perBlock });
      const list = (await readTransfers(core.url, SALE, crowd.head - FINAL_DEPTH, {}))!;
      purchases.setFresh(SALE, { purchases: [], toBlock: list.toBlock }, 2);
      return list.toBlock;
    };
    // All in one look were more than it can hold.
    assert.ok((await look(1_300)) < crowd.head);
    assert.equal(status(), 'CREATED');
    assert.deepEqual([await look(1), status()], [crowd.head, 'CANCELLED']);
  });

  test('blocks in which nobody buys are passed over in one round, and no more is asked once what is final is read', async (t) => {
    const head = 500_000;
    const { core, seller, readRecords } = await startSeller(t, { head, perBlock: 0 });
    await seller.runRound();
    assert.deepEqual((await readRecords()).progress.scanned, { [placeOf(SALE)]: head - FINAL_DEPTH });
    const { asked } = core;
    await seller.runRound();
    assert.equal(core.asked, asked + 1);
    assert.deepEqual(seller.troubles, []);
  });

  test('of those that are worth less than one credit the newest are shown and none is kept; those of nothing are none', async (t) => {
    const sale = { ...SALE, price: { ...SALE.price, decimals: 18 } };
    const [head, perBlock, shown] = [FINAL_DEPTH + 24, 50, 1_000];
    const fresh = FINAL_DEPTH * perBlock;
    const dust = await startSeller(t, { head, perBlock }, sale);
    await dust.seller.runRound();
    const list = (page: number) => dust.purchases.list(BUYER, page, 1);
    assert.equal(list(1).total, fresh + shown);
    const [newest, oldest] = [fresh + 1, fresh + shown].map((page) => list(page).records[0]!);
    assert.deepEqual(
      [newest!.status, newest!.purchase.refusal, newest!.purchase.blockNumber],
      ['FAILED', 'it is worth less than one credit', head - FINAL_DEPTH],
    );
    assert.equal(oldest!.purchase.blockNumber, head - FINAL_DEPTH - shown / perBlock + 1);
    const { purchases: kept, progress } = await dust.readRecords();
    assert.deepEqual([kept, progress.scanned], [[], { [placeOf(sale)]: head - FINAL_DEPTH }]);
    const nothing = await startSeller(t, { head, perBlock, value: '0' }, sale);
    await nothing.seller.runRound();
    assert.equal(nothing.purchases.list(undefined, 1, 1).total, 0);
  });

  test('what a halted index has read is no purchase: its blocks may be of another chain', async (t) => {
    const halted = await startSeller(t, { head: 20, perBlock: 1, state: 'halted' });
    await halted.seller.runRound();
    assert.equal(halted.purchases.list(undefined, 1, 1).total, 0);
    const { purchases, progress } = await halted.readRecords();
    assert.deepEqual([purchases, progress.scanned], [[], {}]);
    assert.match(halted.seller.troubles.join(), /index of ethereum has halted/);
  });

  test('who pays whom follows from the order of the arguments and not from names that a stranger gave them', async () => {
    await using swapped = await serveCrowd({ head: 20, perBlock: 1, names: ['to', 'from', 'value'] });
    assert.deepEqual((await readTransfers(swapped.url, SALE, 1, {}))?.final, []);
  });
});

describe('what is refused holds up nobody else', () => {
  test('a purchase that is not credited stands behind the others', () => {
    const purchases = new Purchases([], []);
    const ids = [1, 2, 3].map((index) => {
      const transfer = { transactionHash: hashOf(index), logIndex: 0, blockNumber: index, timestamp: index };
      const purchase = quoteTransfer({ ...transfer, from: BUYER, amount: 5n }, SALE);
      purchases.add(purchase);
      return purchase.id;
    });
    const waiting = () => purchases.listWaiting().map(({ id }) => ids.indexOf(id) + 1);
    purchases.postpone(ids[0]!);
    assert.deepEqual(waiting(), [2, 3, 1]);
    purchases.settle({ id: ids[1]!, itemHash: 'h', settledAtMs: 5 });
    purchases.postpone(ids[1]!);
    assert.deepEqual([waiting(), purchases.waiting], [[3, 1], 2]);
  });

  const exhausted = (address: string): AccountView => ({
    address,
    credit_balance: -1,
    credit_balance_nano: '-1',
    credit_rate_nano: '1',
    credit_hold: 1,
    credit_available: -2,
    credit_state: 'exhausted',
    credit_state_since: 1,
    runs_out_at: 1_000,
    time: 1_000,
  });
  const settings = { lowSeconds: 100, graceSeconds: 50, enforcement: true };
  const OWNERS = ['a', 'b', 'c'];

  /** Each owner runs two instances. @param refuse throws for what cannot be stopped */
  async function watch(refuse: (instanceId: string) => void, more: Partial<AccountView> = {}) {
    const stopped: string[] = [];
    const told: CreditState[] = [];
    const network: WatchedNetwork = {
      async *readAccounts() {
        yield* OWNERS.map((owner) => ({ ...exhausted(owner), ...more }));
      },
      postNotice: async (_account, state) => void told.push(state),
      listRunning: async (owner) =>
        [1, 2].map((number) => ({ instance_id: `${owner}${number}` })) as Awaited<
          ReturnType<WatchedNetwork['listRunning']>
        >,
      async stopInstance({ instance_id: instanceId }) {
        refuse(instanceId);
        stopped.push(instanceId);
      },
    };
    const stored: { warned: Progress['warned'] } = { warned: {} };
    let uptimeMs = 0;
    const create = () =>
      new Watcher({
        ...{ network, settings, log, warned: stored.warned, now: () => 1_000_000, uptime: () => uptimeMs },
        store: { writeProgress: async (change) => void Object.assign(stored, change) },
      });
    let watcher = create();
    return {
      ...{ stopped, told, stored },
      round: (afterMs = 0) => {
        uptimeMs += afterMs;
        return watcher.runRound();
      },
      restart: () => {
        watcher = create();
      },
    };
  }

  test('a clock that was behind when a balance was announced as low does not take its grace away', async () => {
    const low = { credit_state: 'low', credit_state_since: 1 } as const;
    const { told, stored, round, restart } = await watch(() => {}, low);
    await round();
    await round(30_000);
    restart();
    // How long nobody ran is not known.
    await round(1_000_000);
    await round(19_000);
    assert.deepEqual([told, stored.warned], [[], { a: 49, b: 49, c: 49 }]);
    await round(1_000);
    assert.deepEqual(told, ['exhausted', 'exhausted', 'exhausted']);
  });

  test('who was low once and is so again has the whole grace again', async () => {
    const low = { credit_state: 'low', credit_state_since: 1 } as const;
    const more: Partial<AccountView> = { ...low };
    const { told, stored, round } = await watch(() => {}, more);
    await round();
    await round(40_000);
    Object.assign(more, { credit_state: 'ok', credit_balance_nano: '1000', runs_out_at: null });
    await round(1_000);
    assert.deepEqual(stored.warned, {});
    Object.assign(more, low, { credit_balance_nano: '-1', runs_out_at: 1_000 });
    await round(1_000);
    await round(49_000);
    assert.deepEqual(told, []);
  });

  test('who has bought credit since is not stopped again, and told how long it lasts once that is a grace period', async () => {
    for (const [lasts, notices] of [
      [49, []],
      [80, ['low', 'low', 'low']],
    ] as const) {
      const { stopped, told, round } = await watch(() => {}, {
        credit_balance_nano: '5',
        runs_out_at: 1_000 + lasts,
      });
      await round();
      assert.deepEqual([stopped, told], [[], notices]);
    }
  });

  test('an owner who dates changes as far ahead as anybody may keeps no other instance running', async () => {
    const { stopped, round } = await watch((id) => {
      if (id === 'a1') throw new AppError('TIMESTAMP_IN_FUTURE', 'the timestamp is too far ahead');
    });
    await round();
    assert.deepEqual(stopped, ['a2', 'b1', 'b2', 'c1', 'c2']);
  });

  test('an owner who renames an instance as far ahead as anybody may has no stop of it refused', async () => {
    const after: (number | undefined)[] = [];
    const core = {
      controlInstance: async (_id: string, _action: string, updatedAt?: number) => void after.push(updatedAt),
    } as unknown as CoreClient;
    const network = new Network(core, new AbortController().signal);
    const now = Math.floor(Date.now() / 1000);
    for (const updatedAt of [now - 5, now + LIMITS.futureSeconds])
      await network.stopInstance({ instance_id: 'a', updated_at: updatedAt } as InstanceView);
    // Dated later than that it is sent with a minute left, for as long as it may be under way.
    const asked = Math.floor(Date.now() / 1000);
    assert.equal(after[0], now - 5);
    assert.ok(after[1]! <= asked + LIMITS.futureSeconds - 60, `${after[1]! - asked} seconds ahead`);
    assert.ok(after[1]! > now + LIMITS.futureSeconds / 2);
  });

  test('without a core node the round ends: nobody is refused by it', async () => {
    const { stopped, round } = await watch((id) => {
      if (id === 'b1') throw new AppError('UPSTREAM_UNAVAILABLE', 'away');
    });
    await assert.rejects(round(), { code: 'UPSTREAM_UNAVAILABLE' });
    assert.deepEqual(stopped, ['a1', 'a2']);
  });
});
