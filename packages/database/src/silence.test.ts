import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideFate, type Sighting, sight, type Word } from './silence.ts';

const BUSY = { isBusy: true, bytesRead: 7 };
const since = (silentMs: number, denials = 0): Sighting => ({
  bytesRead: 7,
  silentSinceMs: 0,
  isSilent: silentMs >= 3_000,
  denials,
});
const whyOf = (silentMs: number, word: Word, denials = 0) =>
  decideFate(since(silentMs, denials), word, silentMs).why;

test('a connection is silent that awaits an answer of which nothing comes', () => {
  const first = sight(undefined, BUSY, 100);
  assert.deepEqual([first.silentSinceMs, first.isSilent], [100, false]);
  const later = sight(first, BUSY, 3_100);
  assert.deepEqual([later.silentSinceMs, later.isSilent], [100, true]);
  // Some of the answer came, or the next query began.
  assert.equal(sight(later, { ...BUSY, bytesRead: 8 }, 3_200).isSilent, false);
  assert.equal(sight(later, { ...BUSY, isBusy: false }, 3_200).silentSinceMs, undefined);
  assert.equal(sight(sight(undefined, { ...BUSY, isBusy: false }, 0), BUSY, 9_000).isSilent, false);
});

test('a slow query is left alone, a lost one is given up', () => {
  assert.equal(whyOf(1_000, 'silent'), undefined);
  assert.match(whyOf(3_000, 'silent')!, /for 3 s/);
  assert.equal(whyOf(600_000, 'works'), undefined);
  assert.equal(whyOf(5_000, 'knows nothing of it'), undefined);
  assert.match(whyOf(5_000, 'knows nothing of it', 1)!, /knows nothing/);
  assert.equal(decideFate(since(5_000, 1), 'works', 5_000).sighting.denials, 0);
  assert.equal(whyOf(9_999, 'waits for a standby'), undefined);
  assert.match(whyOf(10_000, 'waits for a standby')!, /no standby/);
});
