import assert from 'node:assert/strict';
import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createSigner } from '@skerry/client';
import { createLogger, type HttpServer, rateLimitsOf, readConfig } from '@skerry/kit';
import { testContract, testRate } from '@skerry/kit/testing';
import { AppError, verifySubmission } from '@skerry/protocol';
import type { AccountView } from '@skerry/protocol/api/core/credits';
import { CREDIT_API } from '@skerry/protocol/api/credit';
import { CREDIT_SERVICE_EXAMPLES } from '@skerry/protocol/api/examples/credit';
import fc from 'fast-check';
import { creditConfig } from './config.ts';
import { createApi } from './http/routes.ts';
import { type Purchase, quoteTransfer, signPurchase } from './purchase.ts';
import { PurchaseStore } from './purchase-store.ts';
import { Purchases } from './purchases.ts';
import { parseSales, type Sale } from './sales.ts';
import type { Transfer } from './transfers.ts';
import { decideNotice, type WatchSettings } from './watcher.ts';

const log = createLogger('credit', 'silent');
const BUYER = `0x${'ab'.repeat(20)}`;
const OTHER = `0x${'ef'.repeat(20)}`;
const RECEIVER = `0x${'cd'.repeat(20)}`;
const CONTRACT = `0x${'01'.repeat(20)}`;
const TOKEN = { symbol: 'USDC', contract: CONTRACT, decimals: 6, credits_per_token: 1_000_000 };
const FILE = {
  networks: [{ name: 'ethereum', chain: 'ETH', chain_id: 1, receiver: RECEIVER, tokens: [TOKEN] }],
};
const [SALE] = parseSales(FILE) as [Sale];

const transferOf = (index: number, more: Partial<Transfer> = {}): Transfer => ({
  transactionHash: `0x${index.toString(16).padStart(64, '0')}`,
  logIndex: 0,
  blockNumber: index,
  timestamp: 1_700_000_000 + index,
  from: BUYER,
  amount: 1_000_000n,
  ...more,
});
const purchaseOf = (index: number, more: Partial<Transfer> = {}) =>
  quoteTransfer(transferOf(index, more), SALE);

describe('the sales file', () => {
  test('strict: unknown fields, doubled tokens and wrong addresses are refused', () => {
    const wrong: unknown[] = [
      {},
      { ...FILE, more: 1 },
      { networks: [{ ...FILE.networks[0], receiver: 'me' }] },
      { networks: [{ ...FILE.networks[0], tokens: [TOKEN, { ...TOKEN, symbol: 'X' }] }] },
      { networks: [{ ...FILE.networks[0], tokens: [{ ...TOKEN, credits_per_token: 0.5 }] }] },
    ];
    for (const one of wrong) assert.throws(() => parseSales(one), { code: /INVALID_CONFIG|UNKNOWN_FIELD/ });
    fc.assert(fc.property(fc.anything(), (value) => assert.throws(() => parseSales(value), AppError)));
  });
});

describe('purchases', () => {
  test('the message of a purchase is the same bytes each time, and verifies', () => {
    const signer = createSigner(`0x${'c4'.repeat(32)}`);
    const purchase = purchaseOf(7);
    const again = JSON.parse(JSON.stringify(purchase)) as Purchase;
    assert.deepEqual(signPurchase(again, signer), signPurchase(purchase, signer));
    const message = verifySubmission(signPurchase(purchase, signer).body, 1_800_000_000);
    assert.deepEqual(
      [message.time, message.itemHash],
      [1_700_000_007, signPurchase(purchase, signer).itemHash],
    );
  });

  test('what cannot be credited says why', () => {
    const refusals = [
      purchaseOf(1, { amount: 0n }),
      purchaseOf(2, { from: `0x${'0'.repeat(40)}` }),
      purchaseOf(3, { from: RECEIVER }),
      purchaseOf(4, { amount: 10n ** 60n }),
    ].map(({ refusal, credits }) => [refusal?.split(' ').slice(0, 4).join(' '), credits]);
    assert.deepEqual(refusals, [
      ['it is worth less', 0],
      ['the tokens were minted,', 0],
      ['the receiver sent the', 0],
      ['it is worth more', 0],
    ]);
    assert.equal(purchaseOf(5).refusal, null);
  });

  test('pages are those of the whole list, newest first', () => {
    const sizes = fc.record({
      final: fc.nat(12),
      fresh: fc.nat(5),
      page: fc.integer({ min: 1, max: 8 }),
      limit: fc.integer({ min: 1, max: 6 }),
    });
    fc.assert(
      fc.property(sizes, fc.boolean(), ({ final, fresh, page, limit }, ofAll) => {
        const purchases = new Purchases([], []);
        const from = (index: number) => ({ from: index % 3 === 0 ? OTHER : BUYER });
        for (let index = 0; index < final; index++) purchases.add(purchaseOf(index, from(index)));
        const rest = Array.from({ length: fresh }, (_, index) => purchaseOf(100 + index, from(index)));
        purchases.setFresh(SALE, { purchases: rest, toBlock: 200 }, 1);
        const all = [
          ...rest.toReversed(),
          ...Array.from({ length: final }, (_, index) => purchaseOf(index, from(index))).reverse(),
        ].filter(({ address }) => ofAll || address === BUYER);
        const { records, total } = purchases.list(ofAll ? undefined : BUYER, page, limit);
        assert.equal(total, all.length);
        assert.deepEqual(
          records.map(({ purchase }) => purchase.id),
          all.slice((page - 1) * limit, page * limit).map(({ id }) => id),
        );
      }),
    );
  });

  test('a reorganisation takes back what is not final, and brings it again', () => {
    const purchases = new Purchases([], []);
    const statuses = () => purchases.list(undefined, 1, 10).records.map(({ status }) => status);
    const set = (...some: Purchase[]) => purchases.setFresh(SALE, { purchases: some, toBlock: 1 }, 1);
    set(purchaseOf(1));
    set();
    assert.deepEqual(statuses(), ['CANCELLED']);
    set(purchaseOf(1));
    assert.deepEqual(statuses(), ['CREATED']);
    purchases.add(purchaseOf(1));
    set();
    assert.deepEqual([statuses(), purchases.waiting], [['PROCESSING'], 1]);
    purchases.settle({ id: purchaseOf(1).id, itemHash: 'h', settledAtMs: 5 });
    purchases.add(purchaseOf(1));
    assert.deepEqual([statuses(), purchases.waiting], [['COMPLETED'], 0]);
  });
});

describe('the journal', () => {
  test('gives back what was written whole, also after a line that was cut off anywhere', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'skerry-credit-store-'));
    try {
      const { store } = await PurchaseStore.open(dir, log);
      await store.addPurchases([purchaseOf(1), purchaseOf(2)]);
      await store.settle({ id: purchaseOf(1).id, itemHash: 'h', settledAtMs: 9 });
      await store.writeProgress({ scanned: { a: 7 } });
      await store.writeProgress({ charged: { instance: 3 } });
      const torn = JSON.stringify({ purchase: purchaseOf(3) });
      for (const cut of [1, 20, torn.length - 1]) {
        await appendFile(join(dir, 'purchases.jsonl'), `\n${torn.slice(0, cut)}`);
        const { records } = await PurchaseStore.open(dir, log);
        assert.deepEqual(records.purchases, [purchaseOf(1), purchaseOf(2)]);
        assert.deepEqual(records.settlements.length, 1);
        assert.deepEqual(records.progress, { scanned: { a: 7 }, charged: { instance: 3 }, warned: {} });
      }
      await (await PurchaseStore.open(dir, log)).store.addPurchases([purchaseOf(3)]);
      assert.equal((await PurchaseStore.open(dir, log)).records.purchases.length, 3);
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  });

  test('whatever is in the file, reading it does not fail', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'skerry-credit-store-'));
    const file = fc.oneof(
      fc.string(),
      fc.array(fc.json()).map((lines) => lines.join('\n')),
    );
    try {
      await fc.assert(
        fc.asyncProperty(file, async (text) => {
          await writeFile(join(dir, 'purchases.jsonl'), text);
          const { records } = await PurchaseStore.open(dir, log);
          assert.ok(records.purchases.every(({ id }) => typeof id === 'string'));
        }),
      );
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  });
});

describe('notices', () => {
  const settings: WatchSettings = { lowSeconds: 100, graceSeconds: 50, enforcement: true };
  const account = (more: Partial<AccountView>): AccountView => ({
    address: BUYER,
    credit_balance: 1,
    credit_balance_nano: '1000000000',
    credit_rate_nano: '1',
    credit_hold: 1,
    credit_available: 0,
    credit_state: null,
    credit_state_since: null,
    runs_out_at: null,
    time: 1000,
    ...more,
  });
  const empty = { credit_balance_nano: '-1', runs_out_at: 1000 };

  test('low comes first, exhausted after the grace period and with enforcement alone, ok when it lasts again', () => {
    const decide = (more: Partial<AccountView>, now: number, own = settings) =>
      decideNotice(account(more), { now, warnedSeconds: settings.graceSeconds }, own);
    assert.equal(decide({ runs_out_at: 1200 }, 1000), undefined);
    assert.equal(decide({ runs_out_at: 1099 }, 1000), 'low');
    assert.equal(decide({ ...empty }, 1000), 'low');
    assert.equal(decide({ ...empty, credit_rate_nano: '0' }, 1000), undefined);
    const low = { credit_state: 'low', credit_state_since: 960 } as const;
    assert.equal(decide({ ...empty, ...low }, 1009), undefined);
    assert.equal(decide({ ...empty, ...low }, 1010), 'exhausted');
    assert.equal(decide({ ...empty, ...low }, 1010, { ...settings, enforcement: false }), undefined);
    assert.equal(decide({ runs_out_at: 1050, ...low }, 1040), undefined);
    assert.equal(decide({ runs_out_at: 1120, ...low }, 1000), undefined);
    assert.equal(decide({ runs_out_at: 1125, ...low }, 1000), 'ok');
    const exhausted = { credit_state: 'exhausted', credit_state_since: 1 } as const;
    assert.equal(decide({ ...empty, ...exhausted }, 1000), undefined);
    assert.equal(decide({ runs_out_at: 1049, ...exhausted }, 1000), undefined);
    assert.equal(decide({ runs_out_at: 1050, ...exhausted }, 1000), 'low');
    assert.equal(decide({ runs_out_at: 1125, ...exhausted }, 1000), 'ok');
    assert.equal(decide({ runs_out_at: null, ...exhausted }, 1000), 'ok');
  });
});

describe('routes', () => {
  let app: HttpServer;
  const purchases = new Purchases([purchaseOf(1), purchaseOf(2, { from: OTHER })], []);
  before(async () => {
    const sales = parseSales({
      networks: [{ ...FILE.networks[0], tokens: [{ ...TOKEN, bonus_basis_points: 2_000 }] }],
    });
    const limits = rateLimitsOf(readConfig(creditConfig, {}));
    const source = { sales, purchases, now: () => 5, reasons: () => [], address: BUYER, enforcement: false };
    app = await createApi({ ...source, limits }, createLogger('test', 'silent'));
  });
  after(() => app.close());

  const get = async (url: string) => {
    const response = await app.inject({ method: 'GET', url });
    return { status: response.statusCode, body: response.json() };
  };
  const post = async (url: string, payload: object) => {
    const response = await app.inject({ method: 'POST', url, payload });
    return { status: response.statusCode, body: response.json() };
  };

  for (const prefix of ['', '/api/v0'])
    test(`${prefix}/payment and ${prefix}/estimation/…`, async () => {
      const { body } = await get(
        `${prefix}/payment?address=${BUYER.toUpperCase().replace('X', 'x')}&limit=1`,
      );
      assert.deepEqual(body.pagination, { total: 1, page: 1, per_page: 1, total_pages: 1 });
      const [first] = body.data;
      assert.deepEqual(
        [first.status, first.created_at, first.in_amount, first.in_currency, first.prices.credit_amount],
        ['PROCESSING', 1_700_000_001_000, '1000000', 'USDC', 1_000_000],
      );
      assert.equal(
        (await get(`${prefix}/payment?pagination=1&page=2`)).body.data[0].tx_hash,
        purchaseOf(1).transactionHash,
      );
      const named = { blockchain: 'ethereum', token: 'usdc' };
      const estimate = await post(`${prefix}/estimation/token-to-credit`, { ...named, amount: '9580000' });
      assert.deepEqual(estimate.body, {
        tokenAmount: '9580000',
        tokenSymbol: 'USDC',
        creditAmount: 11_496_000,
        creditBonusAmount: 1_916_000,
        totalPrice: 9.58,
        price: 1,
        bonusRatio: 0.2,
        timestamp: 5,
      });
      const back = await post(`${prefix}/estimation/credit-to-token`, { ...named, creditAmount: 11_496_000 });
      assert.equal(back.body.tokenAmount, '9580000');
      assert.equal(
        (await get(`${prefix}/estimation/prices?blockchain=ETH`)).body.prices[0].creditAmount,
        1_200_000,
      );
      assert.deepEqual((await get(`${prefix}/estimation/prices?blockchain=sol`)).body, { prices: [] });
    });

  test('wrong requests are refused with a code', async () => {
    const named = { blockchain: 'ethereum', token: 'USDC' };
    const path = '/estimation/token-to-credit';
    for (const query of ['page=0', 'limit=101', 'pagination=x', 'limit=1&pagination=1'])
      assert.deepEqual([(await get(`/payment?${query}`)).body.code], ['INVALID_PARAMETERS'], query);
    assert.equal((await get('/payment?address=abc')).body.code, 'INVALID_ADDRESS');
    const refused: [object, number, string][] = [
      [{ ...named, amount: '1.5' }, 400, 'INVALID_PARAMETERS'],
      [{ ...named, amount: '-1' }, 400, 'INVALID_PARAMETERS'],
      [named, 400, 'INVALID_PARAMETERS'],
      [{ ...named, amount: '9'.repeat(40) }, 400, 'INVALID_PARAMETERS'],
      [{ ...named, token: 'DOGE', amount: '1' }, 404, 'TOKEN_NOT_SOLD'],
    ];
    for (const [body, status, code] of refused) {
      const answer = await post(path, body);
      assert.deepEqual([answer.status, answer.body.code], [status, code], JSON.stringify(body));
    }
    assert.equal((await get('/nowhere')).body.code, 'ROUTE_NOT_FOUND');
  });

  const named = { blockchain: 'ethereum', token: 'USDC' };
  const requests = {
    listPurchases: [{ query: { address: BUYER, limit: 1 } }],
    estimateCredits: [{ body: { ...named, amount: '9580000' } }],
    estimateTokens: [{ body: { ...named, creditAmount: 1 } }],
    listSalePrices: [{ query: { blockchain: 'ethereum' } }, {}],
  };
  const all = {
    ...requests,
    listPurchasesUnversioned: requests.listPurchases,
    estimateCreditsUnversioned: requests.estimateCredits,
    estimateTokensUnversioned: requests.estimateTokens,
    listSalePricesUnversioned: requests.listSalePrices,
    getCreditStatus: [{}],
    getFront: [{}],
    getDocument: [{}],
    getReference: [{}],
  };
  testContract(() => app, CREDIT_API, all, CREDIT_SERVICE_EXAMPLES);

  testRate(() => app, '/status', 100);

  test('GET /status says what is sold', async () => {
    const { body } = await get('/status');
    assert.deepEqual([body.status, body.sales[0].token, body.purchases.total], ['ok', 'USDC', 2]);
  });
});
