import assert from 'node:assert/strict';
import { test } from 'node:test';
import { logText } from './owner/log-text.ts';
import { messageQuery } from './queries/message-query.ts';
import { volumesOf } from './volumes.ts';

test('volumes are told by what they are, whatever else a message has', () => {
  const volumes = [
    { ref: 'a'.repeat(64), use_latest: true, mount: '/opt' },
    { ephemeral: true, size_mib: 100, mount: '/tmp' },
    { persistence: 'host', name: 'data', size_mib: 1_024, parent: { ref: 'b'.repeat(64) } },
    7,
  ];
  assert.deepEqual(
    volumesOf({ volumes }).map(({ kind, mount, name, sizeMib, file }) => [
      kind,
      mount ?? name,
      sizeMib,
      file?.[0] ?? null,
    ]),
    [
      ['file', '/opt', null, 'a'],
      ['passing', '/tmp', 100, null],
      ['kept', 'data', 1_024, 'b'],
      ['kept', null, null, null],
    ],
  );
  assert.deepEqual([{}, null, { volumes: 'x' }].flatMap(volumesOf), []);
});

test('messages are asked for by what the reader filled in, times in the zone of the page', () => {
  assert.deepEqual(messageQuery({}, 'utc'), {});
  assert.deepEqual(messageQuery({ type: 'POST', channel: '', names: 'f00', sort: 'time' }, 'utc'), {
    msgTypes: 'POST',
    refs: 'f00',
  });
  assert.deepEqual(messageQuery({ from: '2026-01-02T03:04', to: 'soon' }, 'utc'), {
    startDate: '1767323040',
  });
});

test('a saved log has a line for each line, with its time', () => {
  assert.equal(logText([{ atMs: 0, text: 'a' }]), '1970-01-01T00:00:00.000Z a\n');
});
