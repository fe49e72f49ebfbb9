import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { sha256Hex } from '../hash.ts';
import { canonicalJson } from '../json/canonical.ts';
import { type NodeRecord, parseMetricsReport, RECORD_NUMBERS, WIRE_KIND } from '../measurement/report.ts';
import { exactMean, meanOf, percentileOf, percentilesOf, qualityOf, secondsOf, UNIT } from './quality.ts';
import { floorRoot } from './roots.ts';
import { type MetricsMessage, Scorer, scoreMessages } from './scorer.ts';
import { decentralizationOf } from './scores.ts';
import { DEFAULT_SCORING_SETTINGS, type ScoringSettings } from './settings.ts';
import {
  DAY,
  HOUR,
  hourly,
  idOf,
  messageOf,
  PERFECT_COMPUTE,
  recordOf,
  TO,
  VERSIONS,
} from './testing/setup.ts';
import { isVersionValid } from './versions.ts';
import { leastHoursFor, totalOf, WEIGHT_UNIT, weightOf } from './weights.ts';

const near = (actual: number, expected: number, within = 1e-9) =>
  assert.ok(Math.abs(actual - expected) <= within, `${actual} is not ${expected}`);

const inputOf = (settings: Partial<ScoringSettings> = {}, period = { from: TO - 730 * DAY, to: TO }) => ({
  settings: { ...DEFAULT_SCORING_SETTINGS, ...settings },
  versions: VERSIONS,
  period,
});

const scoreOne = (messages: MetricsMessage[], settings: Partial<ScoringSettings> = {}) =>
  scoreMessages(messages, inputOf(settings), new Map()).scores;

describe('golden numbers', () => {
  test('weights', () => {
    const golden = [
      [1, 0.0082],
      [2, 0.0081198],
      [24, 0.0065443645167],
      [168, 0.0016625959957],
      [336, 0.00041902527063],
    ] as const;
    for (const [rank, weight] of golden) near(Number(weightOf(rank)) / Number(WEIGHT_UNIT), weight, 1e-13);
  });

  test('a perfect node after n hours', () => {
    const golden = [
      [1, 0.0082, 0.0272496162],
      [24, 0.17620269, 0.2719627355],
      [168, 0.6830997928, 0.7513860281],
      [336, 0.8297772227, 0.8694029951],
      [504, 0.8741593232, 0.9040510301],
      [720, 0.9021086019, 0.925644272],
      [17_520, 0.9999999951, 0.9999999963],
    ] as const;
    for (const [hours, sum, total] of golden) {
      let exact = 0n;
      for (let rank = 1; rank <= hours; rank++) exact += weightOf(rank) * BigInt(UNIT);
      near(Number(exact) / 1e30, sum, 1e-10);
      near(totalOf(exact) / UNIT, total, 1e-10);
    }
  });

  test('the fewest hours that give a score: those of a perfect node, never more than had anything to show', () => {
    const totalAfter = (qualities: readonly number[]) =>
      totalOf(qualities.reduce((sum, quality, index) => sum + weightOf(index + 1) * BigInt(quality), 0n)) /
      UNIT;
    for (const hours of [0, 1, 2, 24, 168, 2_000])
      assert.equal(leastHoursFor(totalAfter(Array(hours).fill(UNIT))), hours);
    assert.equal(leastHoursFor(1), 730 * 24);
    const quality = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: UNIT }), fc.constant(UNIT));
    fc.assert(
      fc.property(fc.array(quality, { maxLength: 300 }), (qualities) => {
        const shown = qualities.filter((one) => one > 0).length;
        assert.ok(leastHoursFor(totalAfter(qualities)) <= shown);
      }),
    );
  });

  test('percentiles', () => {
    const golden: [number[], number][] = [
      [[0.1, 0.2, 0.4], 0.268],
      [[0.1, 0.2], 0.167],
      [[0.1, 0.2, 0.3, 1], 0.307],
    ];
    for (const [latencies, expected] of golden)
      assert.equal(secondsOf(percentileOf(latencies, 67)), expected);
  });

  test('qualities, and what they add up to', () => {
    const compute = { base_latency: 0.2, diagnostic_vm_latency: 0.3, full_check_latency: 1.5 };
    const core = {
      base_latency: 0.2,
      metrics_latency: 0.25,
      aggregate_latency: 0.8,
      file_download_latency: 0.3,
    };
    const quality = (kind: 'core' | 'compute', numbers: NodeRecord['numbers']) =>
      qualityOf(kind, percentilesOf(kind, [recordOf({ numbers })], 67)) / UNIT;
    near(quality('compute', compute), 0.9702187018, 1e-10);
    near(quality('core', core), 0.970325676, 1e-10);
    for (const [hours, total] of [
      [24, 0.2658652841],
      [336, 0.8499108301],
    ] as const) {
      const messages = hourly(hours, () => ({ compute: [recordOf({ numbers: compute })] }));
      near(scoreOne(messages).crn[0]!.total_score, total, 1e-10);
    }
  });

  test('an hour is worth nothing from its limits on, or without a value', () => {
    const quality = (numbers: NodeRecord['numbers']) =>
      qualityOf('compute', percentilesOf('compute', [recordOf({ numbers })], 67));
    assert.equal(quality(PERFECT_COMPUTE), UNIT);
    for (const worse of [
      { base_latency: 2 },
      { diagnostic_vm_latency: 2 },
      { full_check_latency: 6.324556 },
      { base_latency: 1e9 },
    ])
      assert.equal(quality({ ...PERFECT_COMPUTE, ...worse }), 0);
    assert.ok(quality({ ...PERFECT_COMPUTE, base_latency: 1.999999 }) > 0);
    assert.ok(quality({ ...PERFECT_COMPUTE, full_check_latency: 6.324555 }) > 0);
    assert.equal(quality({ base_latency: 0.1 }), 0);
  });

  test('decentralization', () => {
    assert.equal(decentralizationOf(1, 100) / UNIT, 0.9801);
    assert.equal(decentralizationOf(3, 3), 0);
  });
});

describe('the same bytes everywhere', () => {
  test('the estimate never differs from the exact mean', () => {
    const percentile = (limit: number) => fc.integer({ min: 0, max: Math.ceil(Math.sqrt(limit) * 1e8) + 5 });
    for (const limits of [
      [4, 4, 40],
      [4, 4, 8, 8],
    ])
      fc.assert(
        fc.property(fc.tuple(...limits.map(percentile)), (percentiles) => {
          assert.equal(meanOf(percentiles, limits), exactMean(percentiles, limits));
        }),
        { numRuns: 5_000 },
      );
  });

  test('roots are exact', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 120n }), fc.constantFrom(2, 3, 4), (value, k) => {
        const root = floorRoot(value, k as 2 | 3 | 4);
        assert.ok(root ** BigInt(k) <= value && (root + 1n) ** BigInt(k) > value);
      }),
    );
  });

  const latency = fc.double({ min: 0, max: 3, noNaN: true });
  const record = fc.record({
    nodeId: fc.integer({ min: 1, max: 4 }).map(idOf),
    measuredAt: fc.integer({ min: TO - 30 * DAY, max: TO - 1 }),
    asn: fc.constantFrom(null, 1, 2),
    version: fc.constantFrom(null, '1.0.0', '9.9.9'),
    ipv4: fc.constantFrom(null, '192.0.2.1', '192.0.2.2'),
    ipv4Proved: fc.boolean(),
    ipv6Pool: fc.constantFrom(null, '2001:db8:1::/64', '2001:db8:2::/64', 'nonsense'),
    ipv6PoolProved: fc.boolean(),
    configNodeHash: fc.constantFrom(null, idOf(1), idOf(2)),
    numbers: fc.record(
      {
        base_latency: latency,
        diagnostic_vm_latency: latency,
        full_check_latency: latency,
        metrics_latency: latency,
        aggregate_latency: latency,
        file_download_latency: latency,
      },
      { requiredKeys: [] },
    ),
  });
  const records = fc.array(record, { maxLength: 4 }).map((all) => all.map((one) => recordOf(one)));
  const messages = fc
    .array(
      fc.record({ time: fc.integer({ min: TO - 3 * DAY, max: TO + HOUR }), core: records, compute: records }),
      {
        maxLength: 30,
      },
    )
    .map((all) => all.map(({ time, ...report }, index) => messageOf(index, time, report)));

  test('the order of messages, of records and their repetition do not matter', () => {
    const shuffled = messages.chain((all) =>
      fc.tuple(
        fc.constant(all),
        fc.shuffledSubarray([...all, ...all.slice(0, 3)], {
          minLength: Math.min(all.length, 3) + all.length,
        }),
      ),
    );
    const registrations = new Map([[idOf(1), 5]]);
    fc.assert(
      fc.property(shuffled, ([some, others]) => {
        const turned = others.map(({ report, ...rest }) => ({
          ...rest,
          report: { core: report.core.toReversed(), compute: report.compute.toReversed() },
        }));
        assert.equal(
          canonicalJson(scoreMessages(some, inputOf(), registrations)),
          canonicalJson(scoreMessages(turned, inputOf(), registrations)),
        );
      }),
      { numRuns: 200 },
    );
  });

  test('every score is within 0 and 1', () => {
    fc.assert(
      fc.property(messages, (all) => {
        const { ccn, crn } = scoreMessages(all, inputOf({ skip_without_asn: false }), new Map()).scores;
        for (const { total_score, decentralization } of [...ccn, ...crn])
          assert.ok(total_score >= 0 && total_score <= 1 && decentralization >= 0 && decentralization <= 1);
      }),
      { numRuns: 100 },
    );
  });

  test('these messages give this hash, on every machine', () => {
    let state = 1;
    const random = () => {
      state = (state * 48_271) % 2_147_483_647;
      return state / 2_147_483_647;
    };
    const all = hourly(100, () => {
      const made = Array.from({ length: 6 }, (_, index) =>
        recordOf({
          nodeId: idOf(1 + (index % 4)),
          asn: 64_512 + (index % 3),
          ipv4: `192.0.2.${index % 4}`,
          numbers: {
            base_latency: random() * 2,
            diagnostic_vm_latency: random() * 2,
            full_check_latency: random() * 6,
            metrics_latency: random(),
            aggregate_latency: random() * 2,
            file_download_latency: random() * 2,
          },
        }),
      );
      return { core: made, compute: made };
    });
    const { scores } = scoreMessages(all, inputOf(), new Map());
    assert.equal(
      sha256Hex(canonicalJson(scores)),
      '3d57ccd1d43480133bc01d2979aa3bbdcd04ca6c8a19978c89fbd7715d7dc929',
    );
  });

  test('a message newer than the hour in hand is refused, since its hour may be over', () => {
    const scorer = new Scorer(inputOf());
    scorer.add(messageOf(1, TO - 2 * HOUR, {}));
    assert.throws(() => scorer.add(messageOf(2, TO - HOUR + 1, {})), { code: 'INVALID_PARAMETERS' });
  });
});

describe('boundaries', () => {
  const one = (time: number) =>
    messageOf(1, time, { compute: [recordOf({ measuredAt: time, numbers: PERFECT_COMPUTE })] });

  test('from is inside, to is outside', () => {
    const period = { from: TO - DAY, to: TO };
    const count = (time: number) => scoreMessages([one(time)], inputOf({}, period), null).metrics.length;
    assert.deepEqual([TO - DAY - 0.001, TO - DAY, TO - 0.001, TO].map(count), [0, 1, 1, 0]);
    assert.throws(() => new Scorer(inputOf({}, { from: TO, to: TO })), { code: 'INVALID_PARAMETERS' });
  });

  test('a replaced version counts for 13 days more and not on the 14th', () => {
    const table = {
      s: { a: { released_on: '2026-01-10', replaced_on: '2026-03-01' }, b: { released_on: '2026-03-01' } },
    };
    const valid = (name: string | null, date: string) =>
      isVersionValid(table, 's', name, Date.parse(date) / (DAY * 1000), 14);
    assert.deepEqual(
      ['2026-01-09', '2026-01-10', '2026-02-28', '2026-03-01', '2026-03-14', '2026-03-15'].map((date) =>
        valid('a', date),
      ),
      [false, true, true, true, true, false],
    );
    assert.deepEqual(
      [
        valid('b', '2026-02-28'),
        valid('b', '2030-01-01'),
        valid('c', '2026-03-01'),
        valid(null, '2026-03-01'),
      ],
      [false, true, false, false],
    );
    assert.equal(valid('constructor', '2026-03-01'), false);
  });

  test('the day is that of the measurement, not of the message', () => {
    const versions = {
      'skerry-compute': { '1.0.0': { released_on: '2020-01-01', replaced_on: '2026-05-01' } },
    };
    // 14 days after 2026-05-01 begins 2026-05-15.
    const total = (measuredAt: number) =>
      scoreMessages(
        [messageOf(1, TO - HOUR, { compute: [recordOf({ measuredAt, numbers: PERFECT_COMPUTE })] })],
        { ...inputOf(), versions },
        null,
      ).scores.crn[0]!.total_score;
    const lastDayEnds = Date.parse('2026-05-15T00:00:00Z') / 1000;
    assert.ok(total(lastDayEnds - 0.5) > 0);
    assert.equal(total(lastDayEnds), 0);
  });

  test('hours without data cost nothing; hours of failure do', () => {
    const good = { compute: [recordOf({ numbers: PERFECT_COMPUTE })] };
    const [first, , third] = hourly(3, () => good);
    const gap = scoreOne([first!, third!]).crn[0]!;
    const failed = scoreOne([
      first!,
      messageOf(9, TO - 2 * HOUR, { compute: [recordOf({ numbers: {} })] }),
      third!,
    ]).crn[0]!;
    assert.ok(gap.total_score > failed.total_score);
    assert.deepEqual([gap.measurements.record_count, failed.measurements.record_count], [2, 3]);
  });

  test('several measurements of one hour, by one or several monitors, are one hour', () => {
    const records = [0.1, 0.2, 0.4].map((base_latency) =>
      recordOf({ numbers: { ...PERFECT_COMPUTE, base_latency } }),
    );
    const apart = records.map((one, index) => messageOf(index, TO - HOUR + index, { compute: [one] }));
    const together = [messageOf(7, TO - HOUR, { compute: records })];
    assert.deepEqual(scoreOne(apart).crn, scoreOne(together).crn);
    assert.equal(scoreOne(apart).crn[0]!.measurements.record_count, 1);
  });
});

describe('corrections', () => {
  const at = (node: number, own: Partial<NodeRecord>) =>
    recordOf({
      nodeId: idOf(node),
      numbers: PERFECT_COMPUTE,
      ipv4: '192.0.2.9',
      ipv6Pool: '2001:db8:9::/64',
      ...own,
    });

  test('addresses that change', () => {
    const addresses = ['192.0.2.1', '192.0.2.2', '192.0.2.1'];
    const messages = hourly(3, (index) => ({ compute: [at(1, { ipv4: addresses[index]! })] }));
    const free = scoreOne(messages).crn[0]!;
    assert.deepEqual(
      [free.codes, free.measurements.ipv4_changes, free.measurements.ip_penalized],
      [[1003], 2, true],
    );
    assert.ok(free.total_score > 0);
    assert.equal(scoreOne(messages, { ip_enforced: true }).crn[0]!.total_score, 0);
    const short = scoreOne(messages, { ip_enforced: true, ip_window_seconds: 2 * HOUR }).crn[0]!;
    assert.equal(short.measurements.ipv4_changes, 1);
    assert.ok(short.total_score > 0);
  });

  test('of nodes at one address the verified keeps it, then the one that registered first', () => {
    const messages = hourly(1, () => ({
      compute: [at(1, {}), at(2, {}), at(3, {}), at(4, { ipv4: '192.0.2.4', ipv6Pool: '2001:db8:4::/64' })],
    }));
    const flaggedOf = (registrations: Map<string, number> | null) =>
      scoreMessages(messages, inputOf(), registrations).scores.crn.filter((one) => one.codes.includes(1005));
    assert.deepEqual(
      flaggedOf(new Map([[idOf(2), 1]])).map((one) => one.node_id),
      [idOf(1), idOf(3)],
    );
    assert.ok(
      flaggedOf(new Map([[idOf(2), 1]])).every((one) => one.total_score === 0 && one.decentralization === 0),
    );
    // A stranger that nobody registered takes nothing from another one, nor from a node that is registered.
    assert.deepEqual(flaggedOf(new Map()), []);
    assert.deepEqual(flaggedOf(null), []);
    const claimed = hourly(1, () => ({ compute: [at(1, { configNodeHash: idOf(1) }), at(2, {})] }));
    const { crn } = scoreMessages(claimed, inputOf(), new Map([[idOf(2), 1]])).scores;
    assert.deepEqual(
      crn.map((one) => one.measurements.duplicate_ip),
      [false, false],
    );
    const verified = hourly(1, () => ({ compute: [at(1, {}), at(2, { configNodeHash: idOf(2) })] }));
    const scores = scoreMessages(
      verified,
      inputOf(),
      new Map([
        [idOf(1), 1],
        [idOf(2), 9],
      ]),
    ).scores.crn;
    assert.deepEqual(
      scores.map((one) => one.measurements.duplicate_ip),
      [true, false],
    );
    // The flagged node does not crowd its system.
    assert.deepEqual(
      scores.map((one) => one.measurements.nodes_with_identical_asn),
      [1, 1],
    );
    assert.equal(scores[1]!.decentralization, 0.25);
  });

  describe('whoever names the place of a node that proves it takes nothing from it', () => {
    const registrations = new Map([
      [idOf(1), 1],
      [idOf(2), 9],
    ]);
    const flaggedIn = (messages: MetricsMessage[], settings: Partial<ScoringSettings> = {}) =>
      scoreMessages(messages, inputOf(settings), registrations)
        .scores.crn.filter(({ measurements }) => measurements.duplicate_ip)
        .map(({ node_id: id }) => id);
    const own = { configNodeHash: idOf(2), ipv4: '192.0.2.2', ipv4Proved: true };
    const [proving, saying] = [at(2, { ...own, ipv6PoolProved: true }), at(2, own)];
    /** Registered first, and proves another address. */
    const naming = at(1, { configNodeHash: idOf(1), ipv4: '192.0.2.1', ipv4Proved: true });

    test('whoever registered first', () => {
      const messages = hourly(2, () => ({ compute: [naming, proving] }));
      assert.deepEqual(flaggedIn(messages), [idOf(1)]);
      // As it was counted before proofs, and published scores that say nothing of them are.
      const { proved_places: _, ...before } = DEFAULT_SCORING_SETTINGS;
      const { scores } = scoreMessages(messages, { ...inputOf(), settings: before }, registrations);
      assert.deepEqual(
        scores.crn.map(({ measurements }) => measurements.duplicate_ip),
        [false, true],
      );
      assert.deepEqual(flaggedIn(messages, { proved_places: false }), [idOf(2)]);
      assert.deepEqual(flaggedIn(hourly(2, () => ({ compute: [naming, saying] }))), [idOf(2)]);
    });

    test('for as long as the newest proof is not too old, whatever was proved before', () => {
      const hours = (proved: number, window: number) =>
        flaggedIn(
          hourly(5, (index) => ({ compute: [naming, index === proved ? proving : saying] })),
          { dead_window_seconds: window * HOUR },
        );
      assert.deepEqual([hours(2, 3), hours(3, 3)], [[idOf(1)], [idOf(2)]]);
      const moved = hourly(3, (index) => ({
        compute: [
          naming,
          index === 0 ? saying : at(2, { ...own, ipv6Pool: '2001:db8:8::/64', ipv6PoolProved: true }),
        ],
      }));
      assert.deepEqual(flaggedIn(moved), [idOf(2)]);
    });

    test('of several that prove it the rule is the one of before', () => {
      const both = { ipv6PoolProved: true };
      const messages = hourly(1, () => ({
        compute: [at(1, { ...naming, ...both }), at(2, proving), at(3, {})],
      }));
      assert.deepEqual(flaggedIn(messages), [idOf(2), idOf(3)]);
    });
  });

  test('liveness', () => {
    const dead = { numbers: {}, version: null };
    const statusOf = (first: Partial<NodeRecord>, second: Partial<NodeRecord>, settings = {}) =>
      scoreOne(
        hourly(2, (index) => ({ compute: [at(1, index === 0 ? first : second)] })),
        settings,
      ).crn[0]!;
    assert.equal(statusOf({}, dead).status, 'active');
    assert.deepEqual(statusOf(dead, {}).codes, [1007]);
    assert.deepEqual([statusOf(dead, dead).status, statusOf(dead, dead).codes], ['dead', [1006]]);
    assert.equal(statusOf(dead, {}, { dead_window_seconds: HOUR }).status, 'dead');
    assert.equal(statusOf(dead, dead, { dead_enforced: true }).decentralization, 0);
  });

  test('a node of no known system is left out where the settings say so', () => {
    const messages = hourly(1, () => ({
      compute: [at(1, { asn: null }), at(2, { asn: 7, ipv4: null, ipv6Pool: null })],
    }));
    assert.deepEqual(
      scoreOne(messages).crn.map((one) => one.node_id),
      [idOf(2)],
    );
    assert.equal(scoreOne(messages, { skip_without_asn: false }).crn.length, 2);
  });
});

test('nodes of which nothing is known but that they are silent crowd nobody, unless the settings are from before', () => {
  const { only_answered: _, ...before } = DEFAULT_SCORING_SETTINGS;
  const told = (number: number, own: Partial<NodeRecord> = {}) =>
    recordOf({ numbers: PERFECT_COMPUTE, nodeId: idOf(number), ...own });
  const silent = { numbers: {}, version: null, asn: null };
  const measured = [told(1, { asn: 1 }), told(2, { asn: 2 })];
  const strangers = [3, 4, 5].map((number) => told(number, silent));
  const crowdOf = (records: NodeRecord[], settings = DEFAULT_SCORING_SETTINGS) => {
    const messages = hourly(1, () => ({ core: records, compute: records }));
    const { ccn, crn } = scoreMessages(messages, { ...inputOf(), settings }, new Map()).scores;
    assert.deepEqual(
      ccn.map(({ decentralization }) => decentralization),
      crn.map(({ decentralization }) => decentralization),
    );
    return crn.map(({ decentralization, measurements }) => [decentralization, measurements.total_nodes]);
  };
  assert.deepEqual(crowdOf([...measured, ...strangers]), [
    [0.25, 2],
    [0.25, 2],
  ]);
  assert.deepEqual(crowdOf([...measured, ...strangers], before), [
    [0.64, 5],
    [0.64, 5],
  ]);
  // Whoever answers is there, wherever that is.
  assert.equal(crowdOf([...measured, told(3, { asn: null })])[0]![1], 3);
  const alone = crowdOf([told(3, silent)], { ...DEFAULT_SCORING_SETTINGS, skip_without_asn: false });
  assert.deepEqual(alone, [[0, 0]]);
});

test('whatever a report holds, reading it gives records or nothing', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      for (const content of [value, { metrics: value }, { metrics: { ccn: value, crn: [value] } }])
        for (const record of Object.values(parseMetricsReport(content)).flat())
          assert.match(record.nodeId, /^[0-9a-f]{64}$/);
    }),
  );
  const raw = {
    node_id: 'AB'.repeat(32),
    measured_at: 1.5,
    base_latency: '1',
    full_check_latency: -1,
    asn: 1.5,
    version: 7,
    features: ['sev', 3],
  };
  const [record] = parseMetricsReport({
    metrics: { crn: [raw, { ...raw, node_id: 'x' }, { ...raw, measured_at: null }] },
  }).compute;
  assert.deepEqual(record, {
    ...recordOf({ numbers: {} }),
    nodeId: 'ab'.repeat(32),
    measuredAt: 1.5,
    asn: null,
    version: null,
    features: ['sev'],
  });
});

test('canonical JSON is JSON, whatever the order of members', () => {
  assert.equal(
    canonicalJson({ b: [1, { d: 1e21, c: null }], a: 'é"', c: undefined }),
    '{"a":"é\\"","b":[1,{"c":null,"d":1e+21}]}',
  );
  fc.assert(
    fc.property(fc.jsonValue(), (value) =>
      assert.deepEqual(JSON.parse(canonicalJson(value)), JSON.parse(JSON.stringify(value))),
    ),
  );
});

describe('the page about scores', () => {
  const page = readFileSync(new URL('../../../../docs/scoring.md', import.meta.url), 'utf8');
  const [, section = ''] = /\n## What is published\n(.*?)\n## /s.exec(page) ?? [];

  test('names every field of a record', () => {
    const [, table = ''] = /A record has\n(.*?)\n\nLatencies/s.exec(section) ?? [];
    const names = new Set([...table.matchAll(/`([a-z0-9_]+)`/g)].map(([, name]) => name!));
    const texts = /^(url|as_name|version|ipv4|ipv6|ipv6_pool|config_node_hash)$/;
    const sampleOf = (name: string) => {
      if (name === 'node_id') return idOf(1);
      if (name === 'features') return ['a'];
      if (name.endsWith('_proved')) return true;
      return texts.test(name) ? 'a' : 1;
    };
    const record = Object.fromEntries([...names].map((name) => [name, sampleOf(name)]));
    const read = parseMetricsReport({ metrics: { ccn: [record], crn: [record] } });
    for (const kind of ['core', 'compute'] as const) {
      const [{ numbers, ...others }] = read[kind] as [NodeRecord];
      assert.deepEqual(Object.keys(numbers).sort(), [...RECORD_NUMBERS[kind]].sort());
      assert.deepEqual(
        Object.entries(others).filter(([, value]) => !value || (Array.isArray(value) && !value[0])),
        [],
      );
    }
  });

  test('names every field of a score', () => {
    const record = recordOf({ numbers: PERFECT_COMPUTE });
    const scores = scoreOne([messageOf(1, TO - HOUR, { core: [record], compute: [record] })]);
    for (const kind of Object.values(WIRE_KIND)) {
      const [score] = scores[kind];
      for (const name of [...Object.keys(score!), ...Object.keys(score!.measurements)])
        assert.ok(section.includes(`\`${name}\``), `${kind}: ${name}`);
    }
  });
});
