import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { MIB_PER_GIB } from '../content/sizes.ts';
import { AppError } from '../errors.ts';
import { creditsOf, formatDecimal, NANO_PER_CREDIT, nanoOf } from './amounts.ts';
import { parseDistribution, parseExpense, parseNotice } from './content.ts';
import {
  chargedFrom,
  chargeOf,
  holdOf,
  instanceNeeds,
  periodOf,
  programNeeds,
  rateOf,
  storageNeeds,
} from './costs.ts';
import { creditsToTokens, dollarsOf, type TokenPrice, tokensToCredits } from './estimate.ts';
import { balancesAt, countedEntries, expensesOf, purchasesOf } from './ledger.ts';
import { checkPricing, DEFAULT_PRICES, listPriceSteps, type PriceElement, pricesAt } from './prices.ts';
import { costIn, priceIn, showCredits, showDollars } from './shown.ts';

const HASH = 'ab'.repeat(32);
const TX = `0x${'cd'.repeat(32)}`;
const ADDRESS = `0x${'AB'.repeat(20)}`;
const NATURAL = fc.bigInt({ min: 0n, max: 10n ** 30n });

describe('amounts', () => {
  test('whole credits are rounded towards less, and nano adds up', () => {
    assert.deepEqual([creditsOf(1_999_999_999n), creditsOf(-1n), creditsOf(nanoOf(7))], [1n, -1n, 7n]);
    fc.assert(
      fc.property(fc.bigInt(), (nano) => {
        const whole = creditsOf(nano);
        const above = whole * NANO_PER_CREDIT - nano;
        assert.ok(above > -NANO_PER_CREDIT && above < NANO_PER_CREDIT / 2n);
        assert.ok(
          above <= 0n || above * 1_000_000_000n < (nano < 0n ? -nano : nano),
          'more by the rounding of prices alone',
        );
      }),
    );
  });

  test('decimal text', () => {
    assert.deepEqual(
      [formatDecimal(1500n, 3), formatDecimal(-5n, 2), formatDecimal(0n, 6), formatDecimal(12n, 0)],
      ['1.5', '-0.05', '0', '12'],
    );
    assert.equal(dollarsOf(11_490_000n), '11.49');
  });
});

describe('amounts as they are shown', () => {
  const credit = NANO_PER_CREDIT;

  test('credits: rounded towards less, small ones with decimals', () => {
    assert.deepEqual(
      [4_997_592_220_358_183n, -4n * credit, 322_038_365n, -322_038_365n, 3n * credit + 990_000_000n, 0n].map(
        showCredits,
      ),
      ['4,997,592', '-4', '0.322', '-0.323', '3.99', '0'],
    );
    assert.deepEqual(
      [
        -18_955_300_000_000n,
        999_999_000_000n,
        999_999_999_999n,
        1n,
        12_345_678_901_234_567_890n * credit,
      ].map(showCredits),
      ['-18,956', '999.99', '1,000', '0.000000001', '12,345,678,901,234,567,890'],
    );
  });

  test('dollars', () => {
    assert.deepEqual(
      [4_997_592n, 14_250n, -500_000n, -18_956n, 650n, 7n, 10_000_000n, 0n].map((whole) =>
        showDollars(whole * credit),
      ),
      ['$4.99', '$0.014', '-$0.50', '-$0.019', '$0.00065', '$0.000007', '$10', '$0'],
    );
  });

  test('a cost is the round one that the price was made of, for any time, and what else there is does not change it', () => {
    const { instance, program, storage } = DEFAULT_PRICES;
    const periods = ['hour', 'day', 'month'] as const;
    const shown = (rate: bigint) => periods.map((period) => showCredits(costIn(period, rate)));
    assert.deepEqual(shown(instance.computeUnit), ['14,250', '342,000', '10,260,000']);
    assert.deepEqual(shown(instance.computeUnit * 256n), ['3,648,000', '87,552,000', '2,626,560,000']);
    assert.deepEqual(shown(program.computeUnit), ['2,850', '68,400', '2,052,000']);
    assert.deepEqual(shown(storage.storageMib), ['0.0271', '0.651', '19.53']);
    const all = instance.computeUnit + 2n * program.computeUnit + storage.storageMib;
    assert.equal(showCredits(costIn('day', all)), '478,800');
    assert.equal(creditsOf(holdOf(all)), 478_800n);
    assert.deepEqual(
      [creditsOf(chargeOf(all, 0, 86_400)), creditsOf(-chargeOf(program.computeUnit, 0, 3_600))],
      [478_800n, -2_850n],
    );
  });

  test('a price is told as whoever set it meant it', () => {
    const { instance, program, storage } = DEFAULT_PRICES;
    const prices = [
      priceIn('hour', instance.computeUnit),
      priceIn('hour', program.computeUnit),
      priceIn('month', storage.storageMib, MIB_PER_GIB),
      priceIn('hour', 3_958_055_556n),
      priceIn('hour', 0n),
      priceIn('hour', 1_234n),
    ];
    assert.deepEqual(prices.map(showCredits), ['14,250', '2,850', '20,000', '14,249', '0', '0.00444']);
  });
});

describe('costs', () => {
  test('golden numbers', () => {
    assert.deepEqual(instanceNeeds({ cpu: 1, memory: 512, disk: 4 }), { kind: 'instance', units: 1, mib: 0 });
    assert.deepEqual(instanceNeeds({ cpu: 2, memory: 8193, disk: 200 }), {
      kind: 'instance',
      units: 5,
      mib: 102_400,
    });
    assert.equal(programNeeds({ vcpus: 1, memoryMib: 2049, internet: true }).units, 4);
    assert.deepEqual(
      [0, 1, 1_048_576, 1_048_577].map((size) => storageNeeds(size).mib),
      [1, 1, 1, 2],
    );
    const small = rateOf(instanceNeeds({ cpu: 1, memory: 512, disk: 4 }), DEFAULT_PRICES.instance);
    assert.equal(creditsOf(chargeOf(small, 0, 3600)), 14_250n);
    assert.equal(creditsOf(holdOf(small)), 342_000n);
    assert.deepEqual(periodOf('instance', 7_201), { start: 7_200, end: 10_800 });
    assert.deepEqual([chargedFrom(7_300.9, 7_200, 9_999), chargedFrom(5, 7_200, 9_999)], [7_300, 7_200]);
    assert.deepEqual([chargedFrom(7_900, 7_200, 7_300.9), chargedFrom(7_900, 7_200, 7_100)], [7_300, 7_200]);
  });

  test('however a time is cut into pieces, its pieces cost what it costs', () => {
    const times = fc.array(fc.integer({ min: 0, max: 4_000_000_000 }), { minLength: 2, maxLength: 20 });
    fc.assert(
      fc.property(NATURAL, times, (rate, unsorted) => {
        const cuts = unsorted.sort((a, b) => a - b);
        const pieces = cuts.slice(1).map((to, index) => chargeOf(rate, cuts[index]!, to));
        assert.equal(
          pieces.reduce((sum, one) => sum + one, 0n),
          chargeOf(rate, cuts[0]!, cuts.at(-1)!),
        );
      }),
    );
  });
});

describe('prices', () => {
  test('what would not count is refused before it is published', () => {
    checkPricing({ instance: { compute_unit: 0 }, storage: { storage_mib: 7_535, compute_unit: 1 } });
    const refused = [
      ...[null, 5, 'x', [], {}, [{ instance: {} }], { instance: {} }, { instance: 5 }, { instances: {} }],
      ...[{ instance: { unit: 5 } }, { instance: { compute_unit: -5 } }, { instance: { compute_unit: 0.5 } }],
      ...[{ instance: { compute_unit: '5' } }, { instance: { compute_unit: 5 }, storage: {} }],
    ];
    for (const content of refused)
      assert.throws(() => checkPricing(content), { code: 'INVALID_CONTENT' }, JSON.stringify(content));
  });

  const element = (time: number, itemHash: string, content: unknown): PriceElement => ({
    time,
    itemHash,
    content,
  });

  test('a price holds from its second on, and a stranger field changes nothing', () => {
    const steps = listPriceSteps([
      element(200, 'b', { instance: { compute_unit: 7 }, storage: 'free' }),
      element(100.9, 'a', { instance: { compute_unit: 5, storage_mib: -1 } }),
    ]);
    const unitAt = (time: number) => pricesAt(steps, time).instance.computeUnit;
    assert.deepEqual([99, 100, 199, 200, 1e9].map(unitAt), [
      DEFAULT_PRICES.instance.computeUnit,
      ...[5n, 5n, 7n, 7n],
    ]);
    assert.equal(pricesAt(steps, 300).storage.storageMib, DEFAULT_PRICES.storage.storageMib);
  });

  test('in any order the same history', () => {
    const price = fc.oneof(fc.nat(9), fc.constant('x'), fc.constant(-1), fc.constant(0.5));
    const content = fc.oneof(
      fc.anything(),
      fc.record({ instance: fc.record({ compute_unit: price, storage_mib: price }) }),
    );
    const elements = fc.uniqueArray(
      fc.record({ time: fc.integer({ min: 0, max: 9 }), itemHash: fc.string(), content }),
      { selector: ({ itemHash }) => itemHash, maxLength: 8 },
    );
    fc.assert(
      fc.property(elements, fc.infiniteStream(fc.nat()), (all, keys) => {
        const shuffled = all.map((one) => [keys.next().value!, one] as const).sort(([a], [b]) => a - b);
        assert.deepEqual(listPriceSteps(shuffled.map(([, one]) => one)), listPriceSteps(all));
      }),
    );
  });
});

describe('the ledger', () => {
  const entry = fc.record({
    key: fc.constantFrom('a', 'b', 'c', 'd'),
    kind: fc.constantFrom<'purchase' | 'expense'>('purchase', 'expense'),
    owner: fc.constantFrom('alice', 'bob'),
    nano: fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }),
    ref: fc.constant('r'),
    place: fc.nat(3),
    time: fc.nat(5),
    itemHash: fc.constantFrom('0', '1', '2'),
  });
  const entries = fc.uniqueArray(entry, {
    selector: ({ itemHash, time, place }) => `${time} ${itemHash} ${place}`,
    maxLength: 20,
  });

  test('any order and any duplicates give the same balances at every time', () => {
    fc.assert(
      fc.property(entries, fc.array(fc.nat(100)), fc.nat(6), (all, again, time) => {
        const more = all.length === 0 ? [] : again.map((index) => all[index % all.length]!);
        const other = [...more, ...all.toReversed(), ...more];
        assert.deepEqual(
          [...balancesAt(other, time)].sort(([a], [b]) => (a < b ? -1 : 1)),
          [...balancesAt(all, time)].sort(([a], [b]) => (a < b ? -1 : 1)),
        );
      }),
    );
  });

  test('what comes later never changes a balance of before', () => {
    fc.assert(
      fc.property(entries, fc.nat(6), (all, time) => {
        const known = all.filter((one) => one.time <= time);
        assert.deepEqual(
          balancesAt(known, time),
          balancesAt(
            all.toSorted((a, b) => a.time - b.time),
            time,
          ),
        );
      }),
    );
  });

  test('each key counts once, and the sum of balances is the sum of what counts', () => {
    fc.assert(
      fc.property(entries, (all) => {
        const counted = [...countedEntries(all).values()];
        assert.equal(counted.length, new Set(all.map(({ key }) => key)).size);
        const sum = (values: Iterable<bigint>) => [...values].reduce((total, one) => total + one, 0n);
        assert.equal(sum(balancesAt(all, 99).values()), sum(counted.map(({ nano }) => nano)));
      }),
    );
  });

  test('lines become entries with the keys of what they are for', () => {
    const distribution = parseDistribution({
      distribution: {
        chain_id: 1,
        credits: [
          { address: ADDRESS, amount: 5, bonus_amount: 1, tx_hash: TX, log_index: 3 },
          { address: 'addr', amount: 2, ref: 'welcome' },
        ],
      },
    });
    assert.deepEqual(
      purchasesOf(distribution).map(({ key, owner, nano, place }) => [key, owner, nano, place]),
      [
        [`1/${TX}/3`, ADDRESS.toLowerCase(), 5_000_000_000n, 0],
        ['grant/welcome', 'addr', 2_000_000_000n, 1],
      ],
    );
    const expense = parseExpense({
      expense: { start_date: 10, end_date: 20, credits: [{ address: 'a', ref: HASH, nanocredits: '12' }] },
    });
    assert.deepEqual(
      expensesOf(expense).map(({ key, nano }) => [key, nano]),
      [[`${HASH}@10`, -12n]],
    );
  });
});

describe('estimates', () => {
  const token: fc.Arbitrary<TokenPrice> = fc.record({
    symbol: fc.constant('T'),
    decimals: fc.integer({ min: 0, max: 24 }),
    creditsPerToken: fc.bigInt({ min: 1n, max: 10n ** 12n }),
    bonusBasisPoints: fc.integer({ min: 0, max: 20_000 }),
  });
  const USDC: TokenPrice = {
    symbol: 'USDC',
    decimals: 6,
    creditsPerToken: 1_000_000n,
    bonusBasisPoints: 0,
  };

  test('golden numbers: a dollar is a million credits; 9.58 dollars with a fifth on top are 11.496 million', () => {
    assert.deepEqual(tokensToCredits(1_000_000n, USDC), { credits: 1_000_000n, bonus: 0n });
    const withBonus = { ...USDC, bonusBasisPoints: 2_000 };
    assert.deepEqual(tokensToCredits(9_580_000n, withBonus), { credits: 11_496_000n, bonus: 1_916_000n });
    assert.equal(creditsToTokens(11_496_000n, withBonus), 9_580_000n);
  });

  test('credits to tokens is the least amount that buys them', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 1n, max: 10n ** 20n }), token, (credits, price) => {
        const amount = creditsToTokens(credits, price);
        assert.ok(tokensToCredits(amount, price).credits >= credits);
        assert.ok(tokensToCredits(amount - 1n, price).credits < credits);
      }),
    );
  });

  test('two purchases never give more than one of both together', () => {
    fc.assert(
      fc.property(NATURAL, NATURAL, token, (a, b, price) => {
        const whole = tokensToCredits(a + b, price).credits;
        assert.ok(tokensToCredits(a, price).credits + tokensToCredits(b, price).credits <= whole);
      }),
    );
  });
});

describe('contents of strangers', () => {
  test('are read or refused, whatever they are', () => {
    for (const parse of [parseDistribution, parseExpense, parseNotice]) {
      fc.assert(
        fc.property(fc.anything({ withBigInt: true, withNullPrototype: true }), (value) => {
          assert.throws(() => parse(value), AppError);
        }),
      );
    }
  });

  test('lines that say nothing or two things are refused', () => {
    const line = { address: ADDRESS, amount: 5 };
    const refused: object[] = [
      line,
      { ...line, tx_hash: TX },
      { ...line, tx_hash: TX, log_index: 1, amount: 0 },
      { ...line, ref: 'a', log_index: 1 },
      { ...line, ref: 'a', bonus_amount: 6 },
      { ...line, ref: 'a', amount: 1.5 },
      { ...line, tx_hash: TX.toUpperCase(), log_index: 1 },
    ];
    for (const one of refused)
      assert.throws(
        () => parseDistribution({ distribution: { chain_id: 1, credits: [one] } }),
        AppError,
        JSON.stringify(one),
      );
    const credits = [{ ...line, tx_hash: TX, log_index: 1 }];
    assert.throws(() => parseDistribution({ distribution: { credits } }), /chain_id/);
  });
});
