import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VersionTable } from '@skerry/protocol';
import { addRelease, parseDay, parseMoment } from './compute.ts';
import { matchNodeId } from './node-id.ts';

test('a release replaces the newest before it, from its day on', () => {
  const first = addRelease({}, 'skerry-core', '1.0.0', '2026-01-01', false);
  const second = addRelease(first, 'skerry-core', '1.1.0', '2026-02-01', false);
  assert.deepEqual(second, {
    'skerry-core': {
      '1.0.0': { released_on: '2026-01-01', replaced_on: '2026-02-01' },
      '1.1.0': { released_on: '2026-02-01', replaced_on: null },
    },
  });
  const early = addRelease(second, 'skerry-core', '1.2.0-rc', '2026-02-10', true);
  assert.equal(early['skerry-core']!['1.1.0']!.replaced_on, null);
  assert.equal(early['skerry-core']!['1.2.0-rc']!.prerelease, true);
  // Only the field that changed is published; other software stays as it is.
  assert.deepEqual(
    Object.keys(addRelease({ ...first, other: {} }, 'skerry-core', '2', '2026-03-01', false)),
    ['skerry-core'],
  );
  assert.throws(() => addRelease({}, 'x', '1', '2026-13-01', false), { code: 'INVALID_CONTENT' });
});

test('a release that is entered late is replaced by the one after it, and replaces the one before', () => {
  const add = (table: VersionTable, version: string, date: string, isPrerelease = false) =>
    addRelease(table, 'skerry-core', version, date, isPrerelease);
  const known = add(add({}, '1.0.0', '2026-01-01'), '1.2.0', '2026-03-01');
  const late = add(known, '1.1.0', '2026-02-01');
  assert.deepEqual(late['skerry-core'], {
    '1.0.0': { released_on: '2026-01-01', replaced_on: '2026-02-01' },
    '1.1.0': { released_on: '2026-02-01', replaced_on: '2026-03-01' },
    '1.2.0': { released_on: '2026-03-01', replaced_on: null },
  });
  // Entered again it is what it was, and one that replaces nothing is replaced all the same.
  assert.deepEqual(add(late, '1.1.0', '2026-02-01'), late);
  const early = add(late, '1.2.0-rc', '2026-02-10', true)['skerry-core']!;
  assert.equal(early['1.2.0-rc']!.replaced_on, '2026-03-01');
  assert.deepEqual(early['1.1.0'], late['skerry-core']!['1.1.0']);
});

test('moments: Unix seconds or ISO 8601', () => {
  assert.equal(parseMoment('1780272000'), 1_780_272_000);
  assert.equal(parseMoment('2026-06-01'), 1_780_272_000);
  assert.equal(parseMoment('2026-06-01T00:00:00.9Z'), 1_780_272_000);
  for (const bad of ['', 'soon', '-5', '1e3x', '2026-02-30', '2026-02-30T00:00:00Z'])
    assert.throws(() => parseMoment(bad), { code: 'INVALID_PARAMETERS' });
});

test('a release has a day of the calendar', () => {
  assert.equal(parseDay('2028-02-29'), '2028-02-29');
  for (const bad of ['', 'yesterday', '2026-02-31', '2026-13-01', '2026-1-1', '+002026-01-01'])
    assert.throws(() => parseDay(bad), { code: 'INVALID_PARAMETERS', message: /YYYY-MM-DD/ }, bad);
});

test('the start of a node id is enough where one node has it', () => {
  const ids = [`1234${'a'.repeat(60)}`, `1235${'b'.repeat(60)}`, `1234${'a'.repeat(60)}`];
  assert.equal(matchNodeId(ids, '1234A'), ids[0]);
  assert.throws(() => matchNodeId(ids, '123'), { code: 'AMBIGUOUS_NAME' });
  assert.throws(() => matchNodeId(ids, 'ffff'), { code: 'NODE_NOT_FOUND' });
});
