import assert from 'node:assert/strict';
import { appendFile, mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { until } from '@skerry/kit/testing/until';
import { EXIT } from '../exit-codes.ts';
import { skerryHere } from '../testing/here.ts';
import { createTestDir } from '../testing/run.ts';
import { followFile, readTail } from './file-tail.ts';
import { journalArgs, parseEntry } from './journal.ts';
import { createRenderer, type LogLine } from './line.ts';

const record = (time: number, msg: string) => `${JSON.stringify({ level: 30, time, name: 'core', msg })}\n`;
const ALL = { sinceMs: undefined, linesMax: 1_000 };
const messages = (lines: readonly LogLine[]) =>
  lines.map(({ timeMs, text }) => [timeMs, text.startsWith('{') ? JSON.parse(text).msg : text]);

test('a log is read from its end, over the files before it, no further back than is wanted', async () => {
  await using dir = await createTestDir();
  const path = join(dir.path, 'core.log');
  // Larger than what is read at once.
  const many = Array.from({ length: 5_000 }, (_, at) => record(100 + at, `n${at} ${'é'.repeat(50)}`));
  await writeFile(`${path}.2`, `node: not found\n${record(1, 'first')}`);
  await writeFile(`${path}.1`, many.join(''));
  await writeFile(path, `${record(9_000, 'broke')}    at somewhere\n${record(9_001, 'last')}`);
  const read = async (wanted: object) => {
    const { lines, endByte } = await readTail('core', path, { ...ALL, linesMax: 10_000, ...wanted });
    return { lines: messages(lines), endByte };
  };
  const last = [
    [9_000, 'broke'],
    [9_000, '    at somewhere'],
    [9_001, 'last'],
  ];
  assert.deepEqual((await read({ linesMax: 3 })).lines, last);
  assert.deepEqual((await read({ sinceMs: 9_000 })).lines, last);
  const { lines } = await read({});
  assert.equal(lines.length, 5_000 + 5);
  assert.deepEqual(lines.slice(0, 2), [
    [1, 'node: not found'],
    [1, 'first'],
  ]);
  assert.deepEqual(lines[2 + 4_321], [100 + 4_321, `n4321 ${'é'.repeat(50)}`]);
});

test('a log that is followed is followed into its next file, and no line is lost or told twice', async () => {
  await using dir = await createTestDir();
  const path = join(dir.path, 'core.log');
  await writeFile(path, record(1, 'before'));
  const { endByte } = await readTail('core', path, ALL);
  const stop = new AbortController();
  const told: LogLine[] = [];
  const following = followFile({ daemon: 'core', path, endByte }, (line) => told.push(line), stop.signal);
  const half = record(2, 'first');
  await appendFile(path, half.slice(0, 9));
  await appendFile(path, half.slice(9));
  await until('lines', () => told.length === 1);
  await appendFile(path, record(3, 'second'));
  await writeFile(`${path}.next`, record(4, 'third'));
  await rename(path, `${path}.1`);
  await rename(`${path}.next`, path);
  await until('lines', () => told.length === 3);
  stop.abort();
  await following;
  assert.deepEqual(messages(told), [
    [2, 'first'],
    [3, 'second'],
    [4, 'third'],
  ]);
});

test('the logs of "skerry up" in the order of their lines, of all or of some of its daemons', async () => {
  await using home = await createTestDir();
  const logs = (...args: string[]) => skerryHere({ SKERRY_HOME: home.path }, ['logs', ...args]);
  const none = await logs();
  assert.deepEqual([none.code, none.out], [EXIT.notFound, '']);
  assert.match(none.err, /no daemon of this computer has a log.*skerry up/s);
  const dir = join(home.path, 'data', 'devnet', 'logs');
  await mkdir(dir, { recursive: true });
  const now = Date.now();
  await writeFile(join(dir, 'core.log'), record(now - 3_600_000, 'one') + record(now - 1_000, 'three'));
  await writeFile(join(dir, 'gateway.log'), record(now - 60_000, 'two').replace('"core"', '"gateway"'));
  const told = async (...args: string[]) =>
    (JSON.parse((await logs('--json', ...args)).out) as { daemon: string; msg: string }[]).map(
      ({ daemon, msg }) => `${daemon} ${msg}`,
    );
  assert.deepEqual(await told(), ['core one', 'gateway two', 'core three']);
  assert.deepEqual(await told('-n', '1'), ['core three']);
  assert.deepEqual(await told('--since', '5m'), ['gateway two', 'core three']);
  assert.deepEqual(await told('--since', new Date(now - 30_000).toISOString()), ['core three']);
  assert.deepEqual(await told('gateway'), ['gateway two']);
  assert.deepEqual(await told('--data-dir', join(home.path, 'data', 'devnet'), 'core'), [
    'core one',
    'core three',
  ]);
  const mistyped = await logs('gatewy');
  assert.equal(mistyped.code, EXIT.wrongUse);
  assert.match(
    mistyped.err,
    /no daemon is called "gatewy", did you mean gateway\?: there are logs of core, /,
  );
  for (const since of ['yesterday', '15', '-1h', '2026-13-01'])
    assert.equal((await logs('--since', since)).code, since === '15' ? EXIT.ok : EXIT.wrongUse, since);
});

test('for people, the day of a line that is not of today is told', () => {
  const noon = new Date(2026, 10, 30, 12).getTime();
  const render = createRenderer(false, noon);
  const at = (timeMs: number) => render({ daemon: 'core', timeMs, text: record(timeMs, 'm').trim() });
  assert.equal(at(new Date(2026, 10, 29, 11).getTime()), '-- Sun Nov 29 2026\n11:00:00 core      m');
  assert.equal(at(noon), '-- Mon Nov 30 2026\n12:00:00 core      m');
  assert.equal(at(noon), '12:00:00 core      m');
});

test("systemd's journal is asked for the units, and its entries are lines of their daemons", () => {
  assert.deepEqual(journalArgs(['skerry-core'], { sinceMs: 1_500, linesMax: 9 }, true), [
    ...['--unit=skerry-core', '--output=json', '--no-pager', '--lines=9', '--since=@1.500', '--follow'],
  ]);
  const entry = (fields: object) =>
    parseEntry(JSON.stringify({ __REALTIME_TIMESTAMP: '1500000', _SYSTEMD_UNIT: 'init.scope', ...fields }));
  const text = '{"level":30,"msg":"é"}';
  assert.deepEqual(entry({ _SYSTEMD_UNIT: 'skerry-core.service', MESSAGE: text }), {
    ...{ daemon: 'core', timeMs: 1_500, text },
  });
  assert.deepEqual(entry({ UNIT: 'skerry-compute.service', MESSAGE: [...Buffer.from('é')] }), {
    ...{ daemon: 'compute', timeMs: 1_500, text: 'é' },
  });
  for (const other of [entry({}), entry({ UNIT: 'ssh.service' }), parseEntry('-- No entries --')])
    assert.equal(other, undefined);
});
