import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '@skerry/protocol/forms';
import { Failures, NotYetError } from './failures.ts';
import { createLogger } from './log.ts';
import { runLoop } from './loop.ts';
import { Rests } from './rests.ts';

interface Line {
  readonly level: number;
  readonly msg: string;
  readonly failures: number;
  readonly err: { readonly message: string };
}

function createLines() {
  const lines: Line[] = [];
  const log = createLogger('test', 'info', { write: (text: string) => void lines.push(JSON.parse(text)) });
  return { lines, log };
}

test('M12: whatever fails each time rests longer each time, a second at least, and says so ever more rarely', () => {
  const { lines, log } = createLines();
  const failures = new Failures({ log, what: 'it failed', random: () => 1 });
  const rests = Array.from({ length: 1_000 }, (_, at) =>
    failures.note(new Error(`invalid input syntax for type bigint: "${at}.5"`)),
  );
  assert.deepEqual(rests.slice(0, 8), [750, 1_500, 3_000, 6_000, 12_000, 24_000, 45_000, 45_000]);
  assert.deepEqual(
    lines.map((line) => line.failures),
    [1, 4, 8, 16, 32, 64, 128, 256, 512],
  );
  failures.note(new TypeError('another one'));
  assert.equal(lines.at(-1)?.err.message, 'another one');
  failures.clear();
  assert.deepEqual([failures.count, failures.note(new Error('anew'))], [0, 750]);
});

test('what waits for others is no warning while the process starts, and one after it', () => {
  const { lines, log } = createLines();
  let uptimeMs = 1_000;
  const failures = new Failures({ log, what: 'it failed', uptime: () => uptimeMs });
  const levels = () => lines.splice(0).map(({ level }) => level);
  const wait = () => failures.note(new NotYetError('UPSTREAM_UNAVAILABLE', 'peers are not reached yet'));
  wait();
  failures.note(new AppError('UPSTREAM_UNAVAILABLE', 'it does not answer'));
  assert.deepEqual(levels(), [30, 40]);
  wait();
  uptimeMs = 60_000;
  for (let n = 0; n < 3; n++) wait();
  assert.deepEqual(levels(), [30, 40]);
});

test('that a disk is full is said once, without the way through the code, and so is its end', () => {
  const { lines, log } = createLines();
  const failures = new Failures({ log, what: 'it failed' });
  for (const count of [1, 9]) {
    for (let n = 0; n < count; n++) failures.note(new AppError('STORAGE_FULL', `the node keeps ${n} MiB`));
    failures.clear();
    failures.clear();
  }
  const told = [
    [40, undefined],
    [30, undefined],
  ];
  assert.deepEqual(
    lines.map(({ level, err }) => [level, err]),
    [...told, ...told],
  );
});

test('drafts of one file that cannot be written are one failure, whatever their names', () => {
  const { lines, log } = createLines();
  const failures = new Failures({ log, what: 'it cannot be stored' });
  for (const draft of ['a1b2c3d4e5f6', '0123456789ab', 'ffffffffffff', 'c0ffee123456'])
    failures.note(new Error(`EROFS: read-only file system, open '/data/routes.json.${draft}.draft'`));
  assert.deepEqual(
    lines.map((line) => line.failures),
    [1, 4],
  );
});

test('the end of failures that lasted is told, a hiccup is not', () => {
  const { lines, log } = createLines();
  const failures = new Failures({ log, what: 'it failed', fields: { loop: 'upkeep' } });
  for (const count of [1, 2, 5]) {
    for (let n = 0; n < count; n++) failures.note(new Error('no answer'));
    failures.clear();
    failures.clear();
  }
  const told = lines.filter(({ level }) => level === 30).map(({ msg, failures: after }) => [msg, after]);
  assert.deepEqual(told, [['recovered: it failed', 5]]);
});

test('M12: a loop whose work throws each time tries it about once a second, not in every interval', async () => {
  const { lines, log } = createLines();
  const stop = new AbortController();
  const startMs = performance.now();
  const tries: number[] = [];
  await runLoop({ name: 'broken', intervalMs: 1, signal: stop.signal, log }, async () => {
    tries.push(performance.now() - startMs);
    if (tries.length === 3) stop.abort();
    throw new Error(`broken at ${tries.length}`);
  });
  assert.ok(tries[1]! >= 700 && tries[2]! - tries[1]! >= 1_400, `tried after ${tries.join(', ')} ms`);
  assert.equal(lines.length, 1);
});

test('F2: what failed without a note of it is left alone for longer and longer, and the others are not', () => {
  let nowMs = 0;
  const rests = new Rests({ now: () => nowMs, random: () => 0, knownMax: 2 });
  rests.note('a');
  assert.deepEqual(rests.list(), ['a']);
  nowMs = 1_000;
  assert.deepEqual(rests.list(), []);
  rests.note('a');
  rests.note('b');
  nowMs = 2_500;
  assert.deepEqual(rests.list(), ['a']);
  rests.end('a');
  assert.deepEqual(rests.list(), []);
  for (const key of ['c', 'd', 'e']) rests.note(key);
  assert.deepEqual(rests.list(), ['d', 'e']);
});
