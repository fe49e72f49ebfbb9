import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { Departures } from './departures.ts';
import { nodeAt, size } from './testing/setup.ts';

const HOUR_MS = 3_600_000;

test('a node that is drained now and then, as for updates, gets something new as soon as it is back', () => {
  const departures = new Departures({
    isListed: () => false,
    graceMs: 900_000,
    log: createLogger('test', 'silent'),
  });
  const load = { node: nodeAt(0, size(1, 1, 1)), instances: new Map([['a', {}]]) } as never;
  const { nodeId } = nodeAt(0, size(1, 1, 1));
  const isHeldBack = (leftMs: number, backMs: number) => {
    departures.left(load, leftMs);
    return departures.isHeldBack(nodeId, backMs);
  };
  assert.equal(isHeldBack(0, 1_000), false);
  assert.equal(isHeldBack(2 * HOUR_MS, 2 * HOUR_MS + 1_000), false);
  assert.equal(isHeldBack(3 * HOUR_MS, 3 * HOUR_MS + 1_000), true);
  assert.equal(departures.isHeldBack(nodeId, 3 * HOUR_MS + 10_000), false);
});
