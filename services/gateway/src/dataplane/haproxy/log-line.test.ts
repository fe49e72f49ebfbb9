import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readLogLine } from './log-line.ts';

const line = (rest: string) => readLogLine(`skerry 1795479870 132 5001 ${rest}`);

test('a line of HAProxy tells what became of a connection', () => {
  const ended = line('2001:db8::7 47910 a.example - 152 3000 --');
  assert.deepEqual(ended, {
    record: {
      protocol: 'tls',
      startedUnixMs: 1_795_479_870_132,
      durationMs: 5001,
      clientAddress: '2001:db8::7',
      clientPort: 47_910,
      hostname: 'a.example',
      outcome: 'relayed',
      bytesToInstance: 152,
      bytesToClient: 3000,
    },
    failure: undefined,
  });
  const of = (rest: string) => {
    const { record, failure } = line(rest)!;
    return [record.outcome, failure, record.clientAddress, record.bytesToInstance];
  };
  assert.deepEqual(of('::ffff:192.0.2.1 1 a.example - 152 0 SC'), [
    'connect_failed',
    'refused',
    '192.0.2.1',
    0,
  ]);
  assert.deepEqual(of('192.0.2.1 1 a.example - 152 0 sC'), [
    'connect_failed',
    'connect_timeout',
    '192.0.2.1',
    0,
  ]);
  assert.deepEqual(of('192.0.2.1 1 a.example - 152 0 CC'), ['gone', undefined, '192.0.2.1', 0]);
  assert.deepEqual(of('192.0.2.1 1 a.example - 152 9 cD'), ['relayed', undefined, '192.0.2.1', 152]);
  assert.deepEqual(of('192.0.2.1 1 - unknown_name 134 0 PR'), ['unknown_name', undefined, '192.0.2.1', 0]);
});

test('other lines tell of no connection', () => {
  for (const text of ['', 'Server headers/s9 is UP/READY (leaving forced maintenance).', 'skerry 1 2 3'])
    assert.equal(readLogLine(text), undefined);
});
