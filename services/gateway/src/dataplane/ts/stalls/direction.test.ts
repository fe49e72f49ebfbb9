import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { STALL_RULE } from '../../stall-rule.ts';
import { Direction } from './direction.ts';

const KIB = 1024;
const LOOK_MS = 500;
const FEW_BYTES = STALL_RULE.fewBytes;
const MUCH = 4096 * KIB;

describe('how the receiver of a direction takes what waits for it', () => {
  test('who had nothing to take for long is not stalled at the first byte that comes', () => {
    const direction = new Direction({ taken: 0, bytes: 0 }, 0);
    let nowMs = 0;
    for (; nowMs <= 60_000; nowMs += LOOK_MS) direction.look({ taken: 0, bytes: 0 }, nowMs, FEW_BYTES);
    direction.look({ taken: 0, bytes: MUCH }, nowMs, FEW_BYTES);
    assert.equal(direction.pace, 'slow');
    direction.look({ taken: 0, bytes: MUCH }, nowMs + STALL_RULE.stalledMs, FEW_BYTES);
    assert.equal(direction.pace, 'stalled');
  });

  test('what was written while the queues were read counts as taken only until the next look tells better', () => {
    const direction = new Direction({ taken: 0, bytes: MUCH }, 0);
    direction.look({ taken: MUCH, bytes: MUCH }, 0, FEW_BYTES);
    // 50 KiB a second.
    for (let nowMs = LOOK_MS; nowMs <= 20_000; nowMs += LOOK_MS) {
      direction.look({ taken: (nowMs / LOOK_MS) * 25 * KIB, bytes: MUCH }, nowMs, FEW_BYTES);
      assert.equal(direction.pace, 'slow');
    }
  });

  test('an end of stream that waits with the rest is nothing that was given back', () => {
    const direction = new Direction({ taken: 100, bytes: MUCH }, 0);
    direction.look({ taken: 99, bytes: MUCH }, LOOK_MS, FEW_BYTES);
    assert.equal(direction.takenBytes, 100);
  });
});
