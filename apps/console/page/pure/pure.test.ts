import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { frameOf, niceCeiling, pathOf } from './chart.ts';
import { addedUpState, balanceOver, lastingOf, usedOver } from './credits.ts';
import { drawOf } from './draw.ts';
import {
  bytes,
  clock,
  coins,
  count,
  duration,
  latency,
  mebibytes,
  pieces,
  relative,
  short,
} from './format.ts';
import { measuredHistory, SCORE_PARTS, scoreHistory } from './history.ts';
import { chainQueryOf } from './queries/chain-query.ts';
import { fields, list, maybe, number, record, rows, text, Unreadable } from './read.ts';
import { linkTo, parseRoute, placeIn } from './route.ts';
import { sortBy } from './sort.ts';
import { EventText, Rate, Ring } from './stream.ts';
import { compareLines } from './trust/compare.ts';

describe('reading answers', () => {
  const shape = fields({ name: text, size: maybe(number) });

  test('what has the form is read, and nothing else of it', () => {
    assert.deepEqual(shape({ name: 'a', size: 1, more: 2 }, 'x'), { name: 'a', size: 1 });
    assert.deepEqual(shape({ name: 'a' }, 'x'), { name: 'a', size: null });
    assert.deepEqual(record(number)({ a: 1 }, 'x'), { a: 1 });
  });

  test('what has not is refused with its place', () => {
    assert.throws(() => list(shape)([{ name: 'a' }, { name: 2 }], 'rows'), {
      message: 'rows[1].name is not a text',
    });
    assert.throws(() => shape(JSON.parse('{"__proto__":{"name":"a"}}'), 'x'), Unreadable);
    assert.throws(() => number(Number.NaN, 'x'), Unreadable);
  });

  test('one row in another form does not hide the others', () => {
    assert.deepEqual(rows(shape)([{ name: 'a' }, null, { name: 'b' }], 'x').length, 2);
  });
});

test('an address is read as it was written', () => {
  const written = linkTo(['nodes', 'a/b c'], { sort: 'score', order: undefined, by: 'x&y' });
  assert.equal(written, '#/nodes/a%2Fb%20c?sort=score&by=x%26y');
  assert.deepEqual(parseRoute(written), { parts: ['nodes', 'a/b c'], query: { sort: 'score', by: 'x&y' } });
  assert.deepEqual(parseRoute(''), { parts: [], query: {} });
  assert.deepEqual(parseRoute('#/%E0%A4%A'), { parts: ['%E0%A4%A'], query: {} });
});

test('the way back that a link names stays within the page', () => {
  const place = linkTo(['create', 'a/b'], { x: '1' });
  assert.equal(placeIn(place), place);
  assert.equal(placeIn('#/"><script>'), '#/%22%3E%3Cscript%3E');
  for (const elsewhere of [undefined, '', 'javascript:alert(1)', 'https://example.org/', '//example.org'])
    assert.equal(placeIn(elsewhere), undefined);
});

describe('numbers and times as people read them', () => {
  test('ages', () => {
    assert.deepEqual([0, 999, 1_000, 12_345.6, -1_234_567, 2n ** 64n, -1_000n].map(count), [
      '0',
      '999',
      '1,000',
      '12,346',
      '-1,234,567',
      '18,446,744,073,709,551,616',
      '-1,000',
    ]);
    assert.deepEqual(
      [0, 59_000, 60_000, 3_600_000, 47 * 3_600_000, 48 * 3_600_000, 730 * 86_400_000].map(duration),
      ['0 seconds', '59 seconds', '1 minute', '1 hour', '47 hours', '2 days', '2 years'],
    );
    assert.deepEqual(
      [relative(1_000, 2_000), relative(0, 5_000), relative(9_000, 0)],
      ['now', '5 seconds ago', 'in 9 seconds'],
    );
    assert.equal(clock(0, 'utc'), '1970-01-01 00:00:00 UTC');
    assert.equal(clock(Number.NaN, 'utc'), 'no date');
  });

  test('sizes, latencies, hashes', () => {
    assert.deepEqual([512, 1_536, 4_096, 300 * 1_024 ** 2].map(mebibytes), [
      '512 MiB',
      '1.5 GiB',
      '4 GiB',
      '300 TiB',
    ]);
    assert.deepEqual([latency(0.0123), latency(1.2), latency(null)], ['12 ms', '1.20 s', '–']);
    assert.deepEqual([short('abc'), short('0123456789abcdef')], ['abc', '01234567…cdef']);
  });
});

test("a stranger's text shows what would hide or reorder", () => {
  assert.deepEqual(pieces('gpj\u202Eexe'), [
    { text: 'gpj', isTrick: false },
    { text: 'U+202E', isTrick: true },
    { text: 'exe', isTrick: false },
  ]);
  assert.deepEqual(
    pieces('a\u0000\u200Bb').map((piece) => piece.text),
    ['a', 'U+0000', 'U+200B', 'b'],
  );
  assert.deepEqual(
    pieces('ä😀x', 2).map((piece) => piece.text),
    ['ä😀', '…'],
  );
});

test('rows are sorted, those without a value last', () => {
  const all = [{ v: 2 }, { v: null }, { v: 10 }, { v: 1 }];
  assert.deepEqual(
    sortBy(all, ({ v }) => v, false).map(({ v }) => v),
    [1, 2, 10, null],
  );
  assert.deepEqual(
    sortBy(all, ({ v }) => v, true).map(({ v }) => v),
    [10, 2, 1, null],
  );
});

describe('charts', () => {
  test('a gap in the numbers is a gap in the line', () => {
    const points = [0, 1, 2, 3].map((x) => ({ x, y: x === 1 ? null : x / 4 }));
    assert.equal(pathOf(points, frameOf(points, 300, 100, 1)), 'M0 100M200 50L300 25');
    assert.equal(pathOf([{ x: 7, y: 1 }], frameOf([{ x: 7, y: 1 }], 300, 100, 1)), 'M150 0');
  });

  test('a scale ends at a round number', () => {
    assert.deepEqual([0, 0.3, 1, 1.2, 3, 80].map(niceCeiling), [1, 0.5, 1, 2, 5, 100]);
  });

  test('what was measured or scored, over time', () => {
    const scored = (time: number, total: number, sender = '0x1') =>
      ({
        ...{ sender, time },
        content: { content: { scores: { ccn: [], crn: [{ node_id: 'n', total_score: total }] } } },
      }) as never;
    const [[, total]] = SCORE_PARTS;
    assert.deepEqual(scoreHistory([scored(2, 0.5), scored(1, 0.4)], 'n', total), [
      { x: 1_000, y: 0.4 },
      { x: 2_000, y: 0.5 },
    ]);
    assert.deepEqual(scoreHistory([scored(2, 0.5)], 'm', total), [{ x: 2_000, y: null }]);
    // Of one monitor: those of two would be a line that jumps.
    const two = [scored(3, 0.1, '0x2'), scored(2, 0.5)];
    assert.deepEqual(scoreHistory(two, 'n', total, '0x1'), [{ x: 2_000, y: 0.5 }]);
    const measured = [{ measured_at: 2, a: 'x' }, { measured_at: 1, a: 3 }, { a: 4 }];
    assert.deepEqual(measuredHistory(measured, 'a'), [
      { x: 1_000, y: 3 },
      { x: 2_000, y: null },
    ]);
  });
});

test('two scores are compared line by line', () => {
  const line = (name: string, published: string | null, computed: string | null) => ({
    ...{ name, published, computed },
    isEqual: published === computed,
  });
  assert.deepEqual(compareLines({ a: 1, b: { c: 'x', d: [1] } }, { a: 1, b: { c: 'y', d: [1] }, e: 0 }), [
    line('a', '1', '1'),
    line('b.c', '"x"', '"y"'),
    line('b.d', '[1]', '[1]'),
    line('e', null, '0'),
  ]);
  assert.ok(compareLines(undefined, { a: 1 }).every(({ isEqual }) => !isEqual));
});

describe('the stream of events', () => {
  test('events are read however they are cut', () => {
    const whole =
      ':hello\n\nid: 1\nevent: a\ndata: {"x":1}\n\ndata: one\r\ndata: two\r\n\r\ndata: never ended\n';
    for (const size of [1, 2, 7, whole.length]) {
      const events = new EventText();
      const read: string[] = [];
      for (let at = 0; at < whole.length; at += size) read.push(...events.feed(whole.slice(at, at + size)));
      assert.deepEqual(read, ['{"x":1}', 'one\ntwo'], `in pieces of ${size}`);
    }
  });

  test('the newest are kept under their numbers', () => {
    const ring = new Ring<string>(3);
    for (const one of ['a', 'b', 'c', 'd', 'e']) ring.push(one);
    assert.deepEqual([ring.total, ring.first], [5, 2]);
    assert.deepEqual(
      [1, 2, 3, 4, 5].map((at) => ring.at(at)),
      [undefined, 'c', 'd', 'e', undefined],
    );
  });

  test('a rate tells each second, also those of silence', () => {
    const rate = new Rate(4);
    for (const ms of [1_000, 1_500, 2_000, 4_100]) rate.add(ms);
    assert.deepEqual(rate.series(4_900), [2, 1, 0]);
    assert.deepEqual(rate.series(6_000), [0, 1, 0]);
    assert.deepEqual(rate.series(60_000), [0, 0, 0]);
  });
});

describe('credits', () => {
  const credit = 1_000_000_000n;

  test('what was left follows from what is left now and what changed', () => {
    const lines = [
      { nano: -2n * credit, time: 20 },
      { nano: 5n * credit, time: 10 },
    ];
    assert.deepEqual(balanceOver(3n * credit, 30_000, lines), [
      { x: 9_999, y: 0 },
      { x: 10_000, y: 5 },
      { x: 20_000, y: 3 },
      { x: 30_000, y: 3 },
    ]);
  });

  test('what was used adds up to what was used in all, also where only the newest charges are known', () => {
    const charges = [
      { nano: -2n * credit, time: 20 },
      { nano: -3n * credit, time: 10 },
    ];
    const used = (all: bigint | undefined) => usedOver(30_000, charges, all).map(({ y }) => y);
    assert.deepEqual(used(undefined), [3, 5, 5]);
    assert.deepEqual(used(105n * credit), [103, 105, 105]);
  });

  test('credit lasts until a moment that is to come; what is over is not promised', () => {
    const account = (nano: bigint, end: number | null, rate = 1n) =>
      lastingOf({ credit_balance_nano: nano, credit_rate_nano: rate, runs_out_at: end }, 10_000);
    assert.deepEqual(account(5n, 11), { kind: 'until', ms: 11_000 });
    assert.deepEqual(
      [account(5n, 10), account(0n, 20), account(-1n, 10)],
      Array(3).fill({ kind: 'used-up' }),
    );
    assert.deepEqual([account(0n, null), account(-5n, 10, 0n)], Array(2).fill({ kind: 'free' }));
  });

  test('an account with more lines than are read is not called wrong', () => {
    const result = { isSame: false, isCut: true, refused: [] };
    assert.equal(addedUpState(result), 'cut');
    assert.equal(addedUpState({ ...result, refused: ['a message'] }), 'different');
    assert.equal(addedUpState({ ...result, isCut: false }), 'different');
    assert.equal(addedUpState({ ...result, isSame: true }), 'equal');
  });

  test('a balance below zero has room in its chart', () => {
    const frame = frameOf(
      [
        { x: 0, y: -3 },
        { x: 1, y: 4 },
      ],
      100,
      100,
    );
    assert.deepEqual([frame.low, frame.high], [-5, 5]);
    const below = frameOf([{ x: 0, y: -3 }], 100, 100);
    assert.deepEqual([below.low, below.high], [-5, 0]);
  });
});

describe('random values', () => {
  test('what was left out is left to the core node, what is no number is not sent as one', () => {
    assert.deepEqual(drawOf({ seed: 'a', min: '-3', max: ' 3 ', count: '' }), { seed: 'a', min: -3, max: 3 });
    assert.deepEqual(drawOf({}), { seed: '' });
    assert.equal(JSON.stringify(drawOf({ seed: 'a', max: 'x' })), '{"seed":"a","max":null}');
  });
});

test('what is asked of a chain: transactions have addresses, and no arguments', () => {
  const typed = { contract: ' 0xa ', event_name: 'Transfer', args: '{}', from_block: '3', to_block: '' };
  assert.deepEqual(chainQueryOf(typed), {
    ...{ contract: '0xa', event_name: 'Transfer', args: '{}', from_block: '3', limit: '20' },
  });
  assert.deepEqual(chainQueryOf({ ...typed, what: 'transactions', cursor: 'c' }), {
    ...{ address: '0xa', from_block: '3', cursor: 'c', limit: '20' },
  });
});

test('sizes of files', () => {
  assert.deepEqual([0, 999, 1_500, 250_000, 3_200_000_000].map(bytes), [
    ...['0 bytes', '999 bytes', '1.5 kB'],
    ...['250 kB', '3.2 GB'],
  ]);
});

test('an amount of a coin keeps its digits, in a unit that people can read', () => {
  for (const [wei, shown] of [
    ['0', '0 wei'],
    ['999999', '999,999 wei'],
    ['1500000', '0.0015 gwei'],
    ['123456789012345', '123,456.789012345 gwei'],
    ['250000000000000000', '0.25 coins'],
    ['12345000000000000000001', '12,345.000000000000000001 coins'],
    ['-1', '-1'],
  ] as const)
    assert.equal(coins(wei), shown);
});
