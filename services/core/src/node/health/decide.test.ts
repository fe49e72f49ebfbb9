import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideHealth, type HealthFacts } from './decide.ts';

const RESERVE = 1_000_000;
const diskOf = (freeBytes: number) => ({ freeBytes, reserveBytes: RESERVE });
const WELL: HealthFacts = {
  isStopping: false,
  databaseFailure: undefined,
  isReadOnly: false,
  disk: diskOf(2 * RESERVE),
  hasRoom: true,
  queued: 0,
  queuedMax: 100,
  writingMs: 0,
  syncState: 'alone',
  clock: { state: 'unknown', offsetMs: null, clocks: 1 },
};

test('the node is as well as its worst part', () => {
  const statusOf = (facts: Partial<HealthFacts>) => {
    const { status, checks } = decideHealth({ ...WELL, ...facts });
    return [status, checks.database.status, checks.disk.status, checks.pipeline.status];
  };
  assert.deepEqual(statusOf({}), ['ok', 'ok', 'ok', 'ok']);
  assert.deepEqual(statusOf({ disk: diskOf(RESERVE) }), ['degraded', 'ok', 'degraded', 'ok']);
  assert.deepEqual(statusOf({ disk: diskOf(RESERVE - 1), hasRoom: false }), [
    'degraded',
    'ok',
    'degraded',
    'ok',
  ]);
  assert.deepEqual(statusOf({ disk: diskOf(RESERVE / 5), hasRoom: false }), [
    'unavailable',
    'ok',
    'unavailable',
    'ok',
  ]);
  assert.deepEqual(statusOf({ disk: null }), ['degraded', 'ok', 'degraded', 'ok']);
  assert.deepEqual(statusOf({ queued: 50 }), ['degraded', 'ok', 'ok', 'degraded']);
  assert.deepEqual(statusOf({ queued: 100 }), ['unavailable', 'ok', 'ok', 'unavailable']);
  assert.deepEqual(statusOf({ databaseFailure: 'away', disk: null }), [
    'unavailable',
    'unavailable',
    'degraded',
    'ok',
  ]);
  assert.deepEqual(statusOf({ isReadOnly: true }), ['degraded', 'degraded', 'ok', 'ok']);
  assert.deepEqual(statusOf({ writeRefusal: 'its disk is full' }), ['degraded', 'degraded', 'ok', 'ok']);
  assert.deepEqual(statusOf({ writingMs: 4_999 }), ['ok', 'ok', 'ok', 'ok']);
  assert.deepEqual(statusOf({ writingMs: 5_000 }), ['degraded', 'ok', 'ok', 'degraded']);
  assert.equal(decideHealth({ ...WELL, syncState: 'syncing' }).status, 'degraded');
  assert.equal(decideHealth({ ...WELL, syncState: 'synced' }).status, 'ok');
  const vacant = decideHealth({ ...WELL, processesProblem: 'no process has the role write' });
  assert.deepEqual([vacant.status, vacant.checks.roles.status], ['degraded', 'degraded']);
  const unread = decideHealth({ ...WELL, chainsProblem: 'nothing new was read' });
  assert.deepEqual([unread.status, unread.checks.chains.status], ['degraded', 'degraded']);
  assert.deepEqual(statusOf({ isStopping: true }), ['unavailable', 'ok', 'ok', 'ok']);
});

test('what is not well says why', () => {
  const { checks } = decideHealth({
    ...WELL,
    databaseFailure: 'away',
    disk: diskOf(0),
    hasRoom: false,
    queued: 100,
    syncState: 'apart',
    clock: { state: 'off', offsetMs: -3_600_000, clocks: 3 },
    trustProblem: 'nobody told it yet',
    processesProblem: 'no process has the role write',
    chainsProblem: 'nothing new was read',
  });
  for (const check of Object.values(checks)) assert.ok(check.reason);
  assert.deepEqual([checks.disk.takes_writes, checks.disk.reserve_bytes], [false, RESERVE]);
});
