import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PublishedScores } from '@skerry/client';
import { SCORES_AGE_MAX_MS } from '@skerry/protocol';
import { parseDay, parseMoment } from './compute.ts';
import { scoresFor } from './last.ts';
import { matchNodeId } from './node-id.ts';

test('moments: Unix seconds or ISO 8601', () => {
  assert.equal(parseMoment('1780272000'), 1_780_272_000);
  assert.equal(parseMoment('2026-06-01'), 1_780_272_000);
  assert.equal(parseMoment('2026-06-01T00:00:00.9Z'), 1_780_272_000);
  for (const bad of ['', 'soon', '-5', '1e3x', '2026-02-30', '2026-02-30T00:00:00Z'])
    assert.throws(() => parseMoment(bad), { code: 'INVALID_PARAMETERS' });
  // A year of 55,000 would be a period without a measurement.
  assert.throws(() => parseMoment('1780272000000'), { code: 'INVALID_PARAMETERS', message: /milliseconds/ });
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

test('a score is explained by the publisher whose score counts, of a node that none has scored by the newest', () => {
  const published = (
    itemHash: string,
    time: number,
    nodeId: string,
    hours: number,
    hour_seconds = 3_600,
  ): PublishedScores => ({
    ...{ itemHash, publisher: itemHash, time },
    content: {
      measured_at: new Date(time * 1000).toISOString(),
      settings: { hour_seconds },
      scores: {
        ccn: [],
        crn: [{ node_id: nodeId, total_score: 0.5, measurements: { record_count: hours } }],
      },
    } as unknown as PublishedScores['content'],
    ...{ odd: [], signed: {} },
  });
  const last = [
    published('began', 90, 'n', 3),
    published('long', 80, 'n', 900),
    published('other', 70, 'm', 9),
    // More hours, which are shorter.
    published('short', 60, 'n', 9_000, 60),
  ];
  const explainedBy = (nodeId: string, nowMs = 100_000) => scoresFor(last, nodeId, nowMs)?.itemHash;
  assert.deepEqual(
    ['n', 'm', 'none'].map((id) => explainedBy(id)),
    ['long', 'other', 'began'],
  );
  assert.equal(explainedBy('n', 80_001 + SCORES_AGE_MAX_MS), 'began');
  assert.equal(scoresFor([], 'n', 0), undefined);
});
