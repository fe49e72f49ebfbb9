import assert from 'node:assert/strict';
import { test } from 'node:test';
import { InvalidArgumentError } from 'commander';
import fc from 'fast-check';
import * as options from './options.ts';

const refuses = (parse: (text: string) => unknown, ...texts: string[]) => {
  for (const text of texts) assert.throws(() => parse(text), InvalidArgumentError, JSON.stringify(text));
};

test('memory is MiB, or says its unit', () => {
  for (const [text, mib] of Object.entries({ 512: 512, '512M': 512, '512MiB': 512, '2G': 2048, '2gb': 2048 }))
    assert.equal(options.parseMemoryMib(text), mib, text);
  refuses(options.parseMemoryMib, '', '5X', '-1', '1.5G', '1 G', 'G', '1T', '9999999999');
});

test('a disk is GiB, or says its unit', () => {
  for (const [text, gib] of Object.entries({ 4: 4, '4G': 4, '4GiB': 4, '1T': 1024 }))
    assert.equal(options.parseDiskGib(text), gib, text);
  refuses(options.parseDiskGib, '', '512M', '4.5', 'x');
});

test('ports come out in order and once', () => {
  assert.deepEqual(options.parsePorts('443,22, 80,22'), { allowedPorts: [22, 80, 443] });
  assert.deepEqual(options.parsePorts('udp:443, 22,udp:53,udp:443'), {
    allowedPorts: [22],
    allowedUdpPorts: [53, 443],
  });
  assert.deepEqual(options.parsePorts('none'), { allowedPorts: [] });
  assert.deepEqual(options.parsePorts(''), { allowedPorts: [] });
  refuses(
    options.parsePorts,
    '0',
    '65536',
    '22,',
    'ssh',
    '22;80',
    '-1',
    '2 2',
    'udp:',
    'udp:0',
    'udp:udp:1',
    'udp 1',
    'tcp:1',
  );
});

test('every list of ports reads back', () => {
  const ports = (minLength: number) =>
    fc
      .uniqueArray(fc.integer({ min: 1, max: 65535 }), { minLength })
      .map((list) => list.sort((a, b) => a - b));
  const form = fc.record(
    { allowedPorts: ports(0), allowedUdpPorts: ports(1) },
    { requiredKeys: ['allowedPorts'], noNullPrototype: true },
  );
  fc.assert(
    fc.property(form, (open) => assert.deepEqual(options.parsePorts(options.renderPorts(open)), open)),
  );
});

test('durations, ports to listen on, counts, tags, addresses', () => {
  assert.equal(options.parseDurationMs('90'), 90_000);
  assert.equal(options.parseDurationMs('15m'), 900_000);
  assert.equal(options.parseDurationMs('1h'), 3_600_000);
  refuses(options.parseDurationMs, '0', '1d', '-1', '1.5m', '');
  assert.equal(options.parseDurationMs('8760h'), 8760 * 3_600_000);
  for (const longest of ['596h', '35791m', '2147483s'])
    assert.ok(options.parseWaitMs(longest) < 2 ** 31, longest);
  refuses(options.parseWaitMs, '597h', '35792m', '2147484', '9999999h', '0');
  assert.equal(options.parseListenPort('0'), 0);
  refuses(options.parseListenPort, '65536', '-1', '80x');
  refuses(options.parsePositive, '0', 'x');
  assert.deepEqual(options.parseList('a, b,,c'), ['a', 'b', 'c']);
  assert.equal(options.parseOneOf(['a', 'b'])('b'), 'b');
  refuses(options.parseOneOf(['a', 'b']), 'c', '', 'toString');
  assert.equal(options.parseHttpUrl('http://localhost:1/'), 'http://localhost:1');
  refuses(options.parseHttpUrl, 'localhost:4024', 'ftp://x', '');
});

test('a time is how long ago, a date, or Unix seconds; milliseconds are named, and no day is made up', () => {
  const near = (text: string, ms: number) => assert.ok(Math.abs(options.parseTime(text) - ms) < 60_000, text);
  near('90', Date.now() - 90_000);
  near('2h', Date.now() - 2 * 3_600_000);
  near('3d', Date.now() - 3 * 86_400_000);
  assert.equal(options.parseTime('1790000000'), 1_790_000_000_000);
  assert.equal(options.parseTimeSeconds('1790000000'), 1_790_000_000);
  assert.equal(options.parseTimeSeconds('1790000000.123457'), 1_790_000_000.123457);
  assert.equal(options.parseTime('2026-11-30T08:00Z'), Date.UTC(2026, 10, 30, 8));
  assert.equal(options.parseTime('2026-11-30T08:00:01.5+02:00'), Date.UTC(2026, 10, 30, 6, 0, 1, 500));
  // As lists show it, in the zone of this computer.
  assert.equal(options.parseTime('2026-11-30 08:00:01'), new Date(2026, 10, 30, 8, 0, 1).getTime());
  assert.equal(options.parseTime('2026-11-30'), new Date(2026, 10, 30).getTime());
  assert.throws(() => options.parseTime('1790000000000'), /milliseconds/);
  refuses(options.parseTime, '', 'soon', '-5', '2026-02-30', '2026-11-30x', '2026-11-30T25:00', '5w', '0');
  // A year was so many seconds ago, and a day without hyphens was one of 1970.
  refuses(options.parseTime, '2026', '202611', '20261130', '1790000000.', '1790000000.1234567890', '1e9');
  for (const text of ['1969-12-30', '99999d', '9999999h', '9999-12-31'])
    assert.throws(() => options.parseTime(text), /a time from 1970 to 5138/, text);
});
