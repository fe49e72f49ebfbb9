import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SOAKS } from '../soaks.ts';
import { runEach } from './run.ts';
import { type Outcome, readSeen, seenAfter, tellOutcomes } from './seen.ts';

const NOW = { date: '2026-11-30', commit: '0123456789' };
const EARLIER = { date: '2026-11-24', commit: '9876543210', seconds: 7 };
const outcome = (name: string, result: Outcome['result']): Outcome => ({ name, seconds: 1.6, result });

test('who passed is kept with today, in the order of the list; who did not keeps the last pass', () => {
  const before = { flights: EARLIER, plane: EARLIER, gone: EARLIER };
  const ran = [outcome('plane', 'failed'), outcome('hellos', 'passed'), outcome('sim', 'passed in part')];
  const after = seenAfter(before, ran, NOW, ['hellos', 'flights', 'plane', 'sim']);
  assert.deepEqual(Object.entries(after), [
    ['hellos', { ...NOW, seconds: 2 }],
    ['flights', EARLIER],
    ['plane', EARLIER],
  ]);
});

test('one that fails keeps no other from running, and the run fails', async () => {
  const exitCode = process.exitCode;
  const kept: Outcome[] = [];
  const throwing = { name: 'throws', run: () => Promise.reject(new Error('a soak found something')) };
  const telling = {
    name: 'tells',
    run: () => {
      process.exitCode = 1;
      return Promise.resolve({ isInPart: false });
    },
  };
  const well = (name: string, isInPart: boolean) => ({ name, run: () => Promise.resolve({ isInPart }) });
  try {
    const all = [throwing, telling, well('skips', true), well('passes', false)];
    const outcomes = await runEach(all, (one) => kept.push(one));
    assert.equal(process.exitCode, 1);
    assert.deepEqual(
      outcomes.map(({ name, result }) => [name, result]),
      [
        ['throws', 'failed'],
        ['tells', 'failed'],
        ['skips', 'passed in part'],
        ['passes', 'passed'],
      ],
    );
    assert.deepEqual(kept, outcomes);
    await runEach([well('passes', false)], () => undefined);
    assert.equal(process.exitCode, 0);
  } finally {
    process.exitCode = exitCode;
  }
});

test('what ran is told with how it ended', () => {
  assert.equal(
    tellOutcomes([outcome('plane', 'failed'), outcome('sim', 'passed')]),
    '2 ran, 1 failed:\n  failed plane (2 s)\n  passed sim (2 s)',
  );
});

test('passes are kept of soaks that there are, in their order', () => {
  const kept = Object.keys(readSeen());
  assert.deepEqual(
    kept,
    Object.keys(SOAKS).filter((name) => kept.includes(name)),
  );
});
