import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { barsOf, shareOf, versionRuns } from './uptime.ts';

const part = (start: number, answered: number, ...versions: string[]) => ({
  start,
  measurements: 4,
  answered,
  versions,
});

describe('a node over time', () => {
  test('a bar for each part; parts in which nobody looked are not counted', () => {
    const bars = barsOf([part(20, 4), part(40, 1)], { from: 10, step: 10, count: 4 });
    assert.deepEqual(
      bars.map(({ fromMs, share }) => [fromMs, share]),
      [
        [10_000, null],
        [20_000, 1],
        [30_000, null],
        [40_000, 0.25],
      ],
    );
    assert.equal(shareOf(bars), 5 / 8);
    assert.equal(shareOf(barsOf([], { from: 0, step: 10, count: 3 })), null);
  });

  test('versions run from their first to their last part, and come back as another run', () => {
    const parts = [part(0, 4, '1'), part(10, 4, '1', '2'), part(20, 4, '2'), part(40, 4, '1')];
    assert.deepEqual(versionRuns(parts, 10), [
      { version: '1', fromMs: 40_000, toMs: 50_000 },
      { version: '2', fromMs: 10_000, toMs: 30_000 },
      { version: '1', fromMs: 0, toMs: 20_000 },
    ]);
    assert.deepEqual(versionRuns([part(0, 0)], 10), []);
  });
});
