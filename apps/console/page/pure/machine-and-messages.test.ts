import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MESSAGE_FILTERS, namesIn } from '@skerry/protocol/api/core/common/filters';
import { machineUrls } from './machine-urls.ts';
import { findInLog, logText } from './owner/log-text.ts';
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

test('a machine has no URLs before the ports of its gateway are known, nor others for a moment', () => {
  const ports = (http: number | null, https: number | null) => ({ http_port: http, https_port: https });
  assert.equal(machineUrls('four-words-it-has.example.org', undefined), undefined);
  assert.equal(machineUrls(undefined, ports(8080, 8443)), undefined);
  assert.deepEqual(machineUrls('four-words-it-has.example.org', ports(8080, 8443)), {
    https: 'https://four-words-it-has.example.org:8443/',
    http: 'http://four-words-it-has.example.org:8080/',
  });
  assert.deepEqual(machineUrls('four-words-it-has.example.org', ports(null, 443)), {
    https: 'https://four-words-it-has.example.org/',
    http: 'http://four-words-it-has.example.org/',
  });
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

test('every filter of the list of messages can be asked for, and a page of it', () => {
  const blocks = { fromBlock: '1', toBlock: '9' };
  const rest = {
    owner: '0xa',
    status: 'rejected',
    file: 'f',
    key: 'k',
    tag: 't',
    payment: 'hold',
    page: '2',
  };
  const asked = Object.keys(
    messageQuery({ ...blocks, ...rest, type: 'POST', channel: 'c', sender: '0xb', names: 'r' }, 'utc'),
  );
  const more = messageQuery(
    { content: 'x', chain: 'ETH', from: '2026-01-01T00:00', to: '2026-01-02T00:00' },
    'utc',
  );
  const names = Object.values(MESSAGE_FILTERS).map((filter) => namesIn(filter, '/messages.json'));
  // One message, by its hash, has a page of its own.
  const offered = names.filter((one) => one.length > 0 && !one.includes('hashes'));
  const all = new Set([...asked, ...Object.keys(more)]);
  assert.deepEqual(
    offered.filter((one) => !one.some((name) => all.has(name))),
    [],
  );
  assert.ok(all.has('page'));
});

test('a saved log has a line for each line, with its time', () => {
  assert.equal(logText([{ atMs: 0, text: 'a' }]), '1970-01-01T00:00:00.000Z a\n');
});

test('lines of a log are found by what stands in them, and told with their times', () => {
  const lines = ['Booting', 'ssh: refused', 'SSH is up'].map((text, at) => ({ atMs: at * 1_000, text }));
  assert.deepEqual(
    findInLog(lines, 'ssh', 'utc').map(({ text }) => text),
    ['1970-01-01 00:00:01 UTC  ssh: refused', '1970-01-01 00:00:02 UTC  SSH is up'],
  );
  assert.deepEqual(findInLog(lines, 'no such text', 'utc'), []);
});
