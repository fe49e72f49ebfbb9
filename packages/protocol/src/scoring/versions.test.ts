import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addRelease, type VersionTable } from './versions.ts';

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
