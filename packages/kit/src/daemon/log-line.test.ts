import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatLogLine } from './log-line.ts';

const NOON = new Date(2026, 10, 21, 12, 0, 1).getTime();
const line = (record: object) => JSON.stringify({ level: 30, time: NOON, name: 'core', pid: 1, ...record });

test('time, name, message and the main fields', () => {
  const text = formatLogLine(
    'core',
    line({ msg: 'is ready', urls: ['http://a'], count: 2, node: null }),
    0,
    false,
  );
  assert.equal(text, '12:00:01 core      is ready  urls=http://a  count=2');
});

test('warnings and errors are marked; the error says its message and code', () => {
  assert.match(formatLogLine('core', line({ level: 40, msg: 'slow' }), 0, false), /warning: slow$/);
  const err = { type: 'AppError', message: 'no room', code: 'NO_CAPACITY', stack: 'at somewhere' };
  assert.match(
    formatLogLine('core', line({ level: 50, msg: 'failed', err }), 0, false),
    /error: failed: no room \(NO_CAPACITY\)$/,
  );
});

test('what is no record is shown as it is', () => {
  assert.equal(formatLogLine('gateway', '{not json', NOON, false), '12:00:01 gateway   {not json');
  assert.equal(formatLogLine('gateway', 'plain', NOON, false), '12:00:01 gateway   plain');
});

test('control characters of strangers do not reach the terminal', () => {
  const text = formatLogLine('core', line({ msg: 'a\u001b[2Jb\nc', name2: '\u001b]0;x\u0007' }), 0, false);
  assert.ok(!/\p{Cc}/u.test(text), JSON.stringify(text));
});

test('long values are cut', () => {
  const text = formatLogLine('core', line({ msg: 'm', value: 'x'.repeat(5000) }), 0, false);
  assert.ok(text.length < 200);
});

test('colours only where they are asked for', () => {
  assert.ok(formatLogLine('core', line({ msg: 'x', level: 50 }), 0, true).includes('\u001b['));
});
