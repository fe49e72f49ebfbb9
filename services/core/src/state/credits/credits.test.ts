import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { type MessageDraft, type Signer, signMessage } from '@skerry/client';
import {
  balancesAt,
  CREDIT_CHANNEL,
  CREDIT_POST,
  chargeKey,
  DEFAULT_PRICES,
  expensesOf,
  MIB_BYTES,
  parseDistribution,
  parseExpense,
  purchasesOf,
  type ResourceKind,
  rateOf,
  type StampedEntry,
  storageNeeds,
  verifySubmission,
} from '@skerry/protocol';
import fc from 'fast-check';
import { sql } from 'kysely';
import { acceptMessage } from '../../intake/accept.ts';
import { deriveFor } from '../../peers/trust/testing/setup.ts';
import { clearMessages } from '../../testing/clear.ts';
import { createTestCore, instanceContent, signers, type TestCore } from '../../testing/core.ts';
import { digestState } from '../digest.ts';
import { getAccount } from './accounts.ts';
import { sumCosts } from './costs.ts';
import { chargeKeyOf, mibOf, rateOfNew } from './sql.ts';

const { alice, bob, credit, monitor } = signers;
const T0 = 1_700_000_000;
const TX = `0x${'12'.repeat(32)}`;

let core: TestCore;
before(async () => {
  core = await createTestCore();
});
after(() => core[Symbol.asyncDispose]());
beforeEach(() => clearMessages(core));

interface Sent {
  readonly body: string;
  readonly itemHash: string;
  readonly entries: readonly StampedEntry[];
}

function signed(signer: Signer, type: string, content: unknown, at: number): Sent {
  const draft: MessageDraft = { type, content, channel: CREDIT_CHANNEL, timestamp: T0 + at, nonce: 'n' };
  return { ...signMessage(draft, signer), entries: [] };
}

const stamped = (
  sent: Sent,
  at: number,
  entries: readonly Omit<StampedEntry, 'time' | 'itemHash'>[],
): Sent => ({
  ...sent,
  entries: entries.map((entry) => ({ ...entry, time: T0 + at, itemHash: sent.itemHash })),
});

function distribution(signer: Signer, at: number, lines: readonly object[]): Sent {
  const content = { distribution: { chain_id: 1, credits: lines } };
  const sent = signed(signer, 'POST', { type: CREDIT_POST.distribution, content }, at);
  return stamped(sent, at, purchasesOf(parseDistribution(content)));
}

function expense(at: number, start: number, lines: readonly object[]): Sent {
  const content = { expense: { start_date: start, end_date: start + 60, credits: lines } };
  const sent = signed(credit, 'POST', { type: CREDIT_POST.expense, content }, at);
  return stamped(sent, at, expensesOf(parseExpense(content)));
}

const transfer = (address: string, amount: number, log_index: number) => ({
  address,
  amount,
  tx_hash: TX,
  log_index,
});

async function put(all: readonly Sent[]): Promise<void> {
  const { intake, pipeline } = core.rooms;
  await Promise.all(
    all.map(({ body }) =>
      // A peer's word that they came in time.
      intake.peer.keep([{ accepted: acceptMessage(verifySubmission(body, Math.floor(Date.now() / 1000))) }]),
    ),
  );
  await pipeline.idle();
}

const balanceOf = async (address: string, at = 1_000) =>
  (await getAccount(core.rooms.db, address, T0 + at)).balance / 1_000_000_000n;

describe('purchases and charges', () => {
  test('a transfer counts once, however often and by whichever service it was told', async () => {
    const first = distribution(credit, 10, [transfer(alice.address, 100, 0)]);
    await put([
      first,
      distribution(credit, 20, [transfer(bob.address, 999, 0), transfer(bob.address, 5, 1)]),
    ]);
    assert.deepEqual([await balanceOf(alice.address), await balanceOf(bob.address)], [100n, 5n]);
    assert.deepEqual([await balanceOf(alice.address, 9), await balanceOf(alice.address, 10)], [0n, 100n]);
    // Taken back by its publisher, the next one with its key takes its place.
    await put([signed(credit, 'FORGET', { hashes: [first.itemHash] }, 30)]);
    assert.deepEqual([await balanceOf(alice.address), await balanceOf(bob.address)], [0n, 1_004n]);
  });

  test('of a transaction with more transfers than a page has rows each is found by what names it', async () => {
    const lines = Array.from({ length: 150 }, (_, index) => transfer(alice.address, 1, index));
    const sent = distribution(credit, 10, lines);
    await put([sent]);
    const find = async (key: string) => {
      const path = `/addresses/${alice.address}/credit_history?transfer=${key}&limit=1`;
      const { body } = await core.get(path);
      return body.credit_history.map((row: { log_index: number; credit_ref: string }) => [
        row.log_index,
        row.credit_ref,
      ]);
    };
    for (const index of [0, 74, 149])
      assert.deepEqual(await find(`1/${TX}/${index}`), [[index, sent.itemHash]]);
    for (const other of [`2/${TX}/0`, `1/${TX}/150`]) assert.deepEqual(await find(other), []);
  });

  test('strangers change nothing, and say nothing malformed', async () => {
    await put([distribution(bob, 10, [transfer(bob.address, 100, 0)])]);
    assert.equal(await balanceOf(bob.address), 0n);
    const refused = await core.send(bob, {
      type: 'POST',
      content: { type: CREDIT_POST.distribution, content: { distribution: { credits: [] } } },
    });
    assert.deepEqual([refused.status, refused.body.code], [400, 'INVALID_CONTENT']);
  });

  test('whom the setting trusts is read anew when it changes', async () => {
    await put([
      distribution(credit, 10, [transfer(alice.address, 100, 0)]),
      distribution(monitor, 11, [transfer(alice.address, 7, 1)]),
      signed(alice, 'INSTANCE', instanceContent, 12),
    ]);
    const { db } = core.rooms;
    const before_ = await digestState(db);
    await deriveFor(core.rooms, { credit_publishers: [monitor.address] });
    assert.equal(await balanceOf(alice.address), 7n);
    await deriveFor(core.rooms, { credit_publishers: [credit.address] });
    assert.equal(await balanceOf(alice.address), 100n);
    assert.deepEqual(await digestState(db), before_);
  });
});

describe('any order of arrival', () => {
  const line = fc.record({
    address: fc.constantFrom(alice.address, bob.address),
    amount: fc.integer({ min: 1, max: 1_000_000 }),
    tx_hash: fc.constant(TX),
    log_index: fc.nat(4),
  });
  const used = fc.record({
    address: fc.constantFrom(alice.address, bob.address),
    ref: fc.constantFrom('ab'.repeat(32), 'cd'.repeat(32)),
    nanocredits: fc.bigInt({ min: 0n, max: 10n ** 18n }).map(String),
  });
  const message = fc.oneof(
    fc
      .tuple(fc.nat(9), fc.array(line, { minLength: 1, maxLength: 3 }))
      .map(([at, lines]) => distribution(credit, at, lines)),
    fc
      .tuple(fc.nat(9), fc.constantFrom(T0, T0 + 60), fc.array(used, { minLength: 1, maxLength: 3 }))
      .map(([at, start, lines]) => expense(at, start, lines)),
  );
  const world = fc.uniqueArray(message, { selector: ({ itemHash }) => itemHash, minLength: 1, maxLength: 8 });

  test('the database has the balances of the pure fold, at every time, also after some were taken back', async () => {
    await fc.assert(
      fc.asyncProperty(world, fc.nat(3), fc.integer({ min: 1, max: 4 }), async (all, forgotten, batch) => {
        for (let from = 0; from < all.length; from += batch) await put(all.slice(from, from + batch));
        const gone = all.slice(0, Math.min(forgotten, all.length - 1));
        if (gone.length > 0)
          await put([signed(credit, 'FORGET', { hashes: gone.map(({ itemHash }) => itemHash) }, 50)]);
        const entries = all.slice(gone.length).flatMap((one) => one.entries);
        for (const at of [0, 4, 9]) {
          const expected = balancesAt(entries, T0 + at);
          for (const owner of [alice.address, bob.address]) {
            const { balance } = await getAccount(core.rooms.db, owner, T0 + at);
            assert.equal(balance, expected.get(owner) ?? 0n);
          }
        }
        await core.rooms.db.deleteFrom('messages').execute();
        for (const table of ['credit_entries', 'forgets', 'reconsider', 'dependencies'] as const)
          await core.rooms.db.deleteFrom(table as 'messages').execute();
      }),
      { numRuns: 40 },
    );
  });
});

describe('costs', () => {
  const UNIT = DEFAULT_PRICES.instance.computeUnit;

  test('by the prices of the message time; a FORGET ends them; what was there before keeps its price', async () => {
    const old = signed(alice, 'INSTANCE', instanceContent, 10);
    const prices = signed(
      credit,
      'AGGREGATE',
      { key: 'net-credit-pricing', content: { instance: { compute_unit: 7 } } },
      20,
    );
    const new_ = signed(alice, 'INSTANCE', { ...instanceContent, memory: 4096, disk: 41 }, 20);
    const strangers = signed(
      bob,
      'AGGREGATE',
      { key: 'net-credit-pricing', content: { instance: { compute_unit: 0 } } },
      5,
    );
    const MIB = DEFAULT_PRICES.storage.storageMib;
    for (const order of [
      [old, prices, new_, strangers],
      [strangers, new_, prices, old],
    ]) {
      await put(order);
      const rateAt = async (at: number) => (await getAccount(core.rooms.db, alice.address, T0 + at)).rate;
      assert.deepEqual([await rateAt(9), await rateAt(10)], [0n, UNIT]);
      assert.equal(await rateAt(20), UNIT + 14n + 1024n * MIB);
      const { body } = await core.get(`/costs?address=${alice.address}&include_details=1`);
      assert.deepEqual(
        body.resources.map((one: { cost_credit_nano: string }) => BigInt(one.cost_credit_nano)),
        [14n + 1024n * MIB, UNIT],
      );
      assert.equal(body.summary.total_cost_credit, '3.966049187000000000');
      const { body: price } = await core.get(`/price/${old.itemHash}`);
      assert.deepEqual([price.cost, price.charged_address], ['3.958333333000000000', alice.address]);
      await put([signed(alice, 'FORGET', { hashes: [new_.itemHash] }, 60)]);
      assert.equal(await rateAt(100), UNIT);
      for (const table of [
        'messages',
        'credit_resources',
        'forgets',
        'dependencies',
        'instances',
        'reconsider',
      ] as const)
        await core.rooms.db.deleteFrom(table as 'messages').execute();
    }
    await put([signed(credit, 'AGGREGATE', { key: 'net-credit-pricing', content: {} }, 1)]);
  });

  test('the database reckons as the rules do', async () => {
    const { db } = core.rooms;
    const changed = { instance: { compute_unit: 7 } };
    await put([signed(credit, 'AGGREGATE', { key: 'net-credit-pricing', content: changed }, 15)]);
    const priceOf = (kind: ResourceKind, created: number) =>
      kind === 'instance' && created >= T0 + 15
        ? { ...DEFAULT_PRICES.instance, computeUnit: 7n }
        : DEFAULT_PRICES[kind];
    const resource = fc.record({
      kind: fc.constantFrom<ResourceKind>('instance', 'program', 'storage'),
      created: fc.double({ min: T0, max: T0 + 30, noNaN: true }),
      units: fc.nat(64),
      mib: fc.nat(100_000),
    });
    const sizeBytes = fc.oneof(fc.nat(3 * MIB_BYTES), fc.maxSafeNat());
    await fc.assert(
      fc.asyncProperty(fc.array(resource, { minLength: 1, maxLength: 8 }), sizeBytes, async (all, size) => {
        const rates = all.map((one) => rateOf(one, priceOf(one.kind, one.created)));
        const sum = rates.reduce((before, rate) => before + rate, 0n);
        const rows = all.map((one, at) => ({ ...one, item_hash: `${at}`, owner: alice.address }));
        await db.insertInto('credit_resources').values(rows).execute();
        assert.equal((await getAccount(db, alice.address, T0 + 100)).rate, sum);
        assert.equal((await sumCosts(db, {})).rate, sum);
        await db.deleteFrom('credit_resources').execute();
        const [{ kind, created, units, mib }] = all as [(typeof all)[number]];
        const rate = rateOfNew(
          sql`${kind}`,
          sql`${created}::float8`,
          sql`${units}::bigint`,
          sql`${mib}::bigint`,
        );
        const counted = mibOf(sql`${size}::bigint`);
        const { rows: told } = await sql`
          select (${rate})::text as rate, (${counted})::text as mib, ${chargeKeyOf(sql`${kind}::text`, T0)} as key`.execute(
          db,
        );
        assert.deepEqual(told, [
          { rate: String(rates[0]), mib: String(storageNeeds(size).mib), key: chargeKey(kind, T0) },
        ]);
      }),
      { numRuns: 25 },
    );
    await clearMessages(core);
    await put([signed(credit, 'AGGREGATE', { key: 'net-credit-pricing', content: {} }, 1)]);
  });

  test('what costs nothing does not stand before what does', async () => {
    const pricesOf = (unit: number, at: number) =>
      signed(
        credit,
        'AGGREGATE',
        { key: 'net-credit-pricing', content: { instance: { compute_unit: unit } } },
        at,
      );
    const paid = signed(bob, 'INSTANCE', instanceContent, 20);
    const free = [10, 11, 12].map((at) => signed(alice, 'INSTANCE', instanceContent, at));
    await put([pricesOf(0, 5), pricesOf(7, 15), ...free, paid]);
    const { body } = await core.get(`/credits/charges?kind=instance&time=${T0 + 30}&limit=2`);
    assert.deepEqual(
      body.credits.map(({ ref }: { ref: string }) => ref),
      [paid.itemHash],
    );
    await clearMessages(core);
    await put([signed(credit, 'AGGREGATE', { key: 'net-credit-pricing', content: {} }, 1)]);
  });

  test('what is charged for is charged once, from its creation to the end of the period', async () => {
    const instance = signed(alice, 'INSTANCE', instanceContent, 10);
    await put([instance]);
    const period = async () =>
      (await core.get(`/credits/charges?kind=instance&time=${T0 + 20}`)).body as {
        start_date: number;
        end_date: number;
        credits: { address: string; ref: string; nanocredits: string }[];
      };
    const due = await period();
    assert.equal(due.end_date - due.start_date, 3_600);
    assert.deepEqual(due.credits, [
      {
        address: alice.address,
        ref: instance.itemHash,
        nanocredits: String(UNIT * BigInt(due.end_date - T0 - 10)),
      },
    ]);
    await put([signed(credit, 'POST', { type: CREDIT_POST.expense, content: { expense: due } }, 30)]);
    assert.deepEqual((await period()).credits, []);
    const { body } = await core.get(`/addresses/${alice.address}/balance?time=${T0 + 30}`);
    assert.equal(body.credit_balance_nano, `-${due.credits[0]!.nanocredits}`);
    const { body: history } = await core.get(`/addresses/${alice.address}/credit_history`);
    assert.deepEqual(
      [history.pagination.total, history.credit_history[0].origin_ref, history.credit_history[0].end_date],
      [1, instance.itemHash, due.end_date],
    );
  });
});
