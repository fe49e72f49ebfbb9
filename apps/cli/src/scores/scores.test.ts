import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDay, parseMoment } from './compute.ts';
import { matchNodeId } from './node-id.ts';

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
