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

test('how long a node waits depends on its own departures alone, whatever others do meanwhile', () => {
  const MINUTE_MS = 60_000;
  const [one, other] = [nodeAt(0, size(1, 1, 1)), nodeAt(1, size(1, 1, 1))].map(({ nodeId }) => nodeId);
  for (const doOthersLeave of [false, true]) {
    const departures = new Departures({
      isListed: () => false,
      graceMs: 15 * MINUTE_MS,
      log: createLogger('test', 'silent'),
    });
    const leave = (nodeId: string, atMs: number) => departures.fellSilent(nodeId, atMs);
    const isHeldBack = (atMs: number) => {
      if (doOthersLeave) leave(`${other} ${atMs}`, atMs);
      return departures.isHeldBack(one!, atMs);
    };
    // Three silences: the third costs half an hour.
    for (const minutes of [0, 20, 60]) {
      leave(one!, minutes * MINUTE_MS);
      if (minutes < 60) isHeldBack((minutes + 1) * MINUTE_MS);
    }
    // It answers again just before its departure would be forgotten, and waits all the same.
    const backMs = (60 + 119) * MINUTE_MS;
    assert.equal(isHeldBack(backMs), true);
    assert.equal(isHeldBack(backMs + 29 * MINUTE_MS), true, `${doOthersLeave}`);
    assert.equal(isHeldBack(backMs + 30 * MINUTE_MS), false);
    // After two hours of silence it begins anew, and the next departure is noted as any other.
    for (const minutes of [300, 320]) {
      leave(one!, minutes * MINUTE_MS);
      if (minutes < 320) isHeldBack((minutes + 1) * MINUTE_MS);
    }
    assert.equal(isHeldBack((320 + 120) * MINUTE_MS), false, `${doOthersLeave}`);
    leave(one!, 460 * MINUTE_MS);
    assert.equal(isHeldBack(461 * MINUTE_MS), false);
    leave(one!, 480 * MINUTE_MS);
    assert.equal(isHeldBack(481 * MINUTE_MS), true);
  }
});
