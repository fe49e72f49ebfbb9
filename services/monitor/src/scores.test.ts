import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseVersionTable } from '@skerry/protocol';
import { addReleases, isPublished, parseRelease } from './scores.ts';

test('releases are SOFTWARE@VERSION, and nothing else', () => {
  assert.deepEqual(parseRelease('skerry-core@1.2.0-rc.1+x'), {
    software: 'skerry-core',
    version: '1.2.0-rc.1+x',
  });
  for (const text of ['', 'skerry-core', '@1', 'skerry-core@', 'Skerry@1', 'a@b c', 'a@é'])
    assert.throws(() => parseRelease(text), /SOFTWARE@VERSION/, text);
});

test('a table gets what it lacks of each software, and keeps what it has', () => {
  const table = {
    'skerry-core': { '1.0.0': { released_on: '2026-01-01' } },
    other: { '9': { released_on: '2020-01-01' } },
  };
  const releases = ['skerry-core@1.0.0', 'skerry-core@1.1.0', 'skerry-compute@1.1.0'].map(parseRelease);
  const content = addReleases(table, releases, '2026-02-03');
  // An aggregate's fields are replaced one by one: what is not named stays.
  assert.deepEqual(content, {
    'skerry-core': { '1.0.0': { released_on: '2026-01-01' }, '1.1.0': { released_on: '2026-02-03' } },
    'skerry-compute': { '1.1.0': { released_on: '2026-02-03' } },
  });
  assert.equal(addReleases(parseVersionTable(content), releases, '2026-02-04'), undefined);
});

test('scores are published once for an hour, however often the monitor is started in it', () => {
  const at = (hour: string, scores_hash = 'a') => ({
    period: { from_date: '2026-01-01T00:00:00.000Z', to_date: `2026-01-02T${hour}:00:00.000Z` },
    scores_hash,
  });
  assert.equal(isPublished(undefined, at('01')), false);
  assert.equal(isPublished(at('01'), at('01')), true);
  assert.equal(isPublished(at('01'), at('02')), false, 'the next hour, in which nothing changed');
  assert.equal(isPublished(at('01'), at('01', 'b')), false, 'a report came late');
});
