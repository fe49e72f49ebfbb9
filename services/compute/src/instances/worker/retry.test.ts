import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AppError } from '@skerry/protocol';
import {
  DOWNLOAD_RETRY_MAX_MS,
  decideRetry,
  FAILURE_WINDOW_MS,
  FAILURES_MAX,
  isOwnersFault,
  PASSING_RETRY_MAX_MS,
  reasonOf,
} from './retry.ts';

describe('retries', () => {
  const broken = new AppError('VM_START_FAILED', 'no');

  test('what no retry can mend is given up at once', () => {
    assert.deepEqual(decideRetry(new AppError('UNKNOWN_IMAGE', 'none'), [], 0), {
      giveUp: { code: 'UNKNOWN_IMAGE', message: 'none' },
    });
  });

  test('what the machine lacks for now is tried for as long as it takes', () => {
    const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    const times = Array.from({ length: 4 * FAILURES_MAX }, (_, index) => index);
    for (const error of [
      full,
      new AppError('STORAGE_FULL', 'full'),
      new AppError('NO_CAPACITY', 'no memory'),
      new AppError('UPSTREAM_UNAVAILABLE', 'no core node'),
      new AppError('OVERLOADED', 'a core node with much to do'),
      new AppError('DATABASE_UNAVAILABLE', 'a core node without its database'),
    ])
      assert.deepEqual(decideRetry(error, times, times.length), { retryInMs: PASSING_RETRY_MAX_MS });
    assert.equal(reasonOf(full).code, 'STORAGE_FULL');
  });

  test('what each try may download as a whole is tried more rarely, and for as long as it takes', () => {
    for (const code of ['IMAGE_UNAVAILABLE', 'FILE_CORRUPT', 'HASH_MISMATCH', 'UNEXPECTED_ANSWER'] as const) {
      const error = new AppError(code, 'no mirror, or a core node that gives something else');
      const times: number[] = [];
      const waits: number[] = [];
      for (let [nowMs, tries] = [0, 0]; tries < 4 * FAILURES_MAX; tries++) {
        const decision = decideRetry(error, times, nowMs);
        assert.ok('retryInMs' in decision, code);
        times.push(nowMs);
        waits.push(decision.retryInMs);
        nowMs += decision.retryInMs;
      }
      assert.deepEqual(waits.slice(0, 5), [1_000, 4_000, 16_000, 64_000, 256_000]);
      assert.ok(
        waits.slice(5).every((wait) => wait === DOWNLOAD_RETRY_MAX_MS),
        'its words stay the same',
      );
      assert.equal(isOwnersFault(error), false, code);
    }
  });

  test('else it is tried again, after longer and longer, up to a limit', () => {
    const waits: number[] = [];
    const times: number[] = [];
    for (let count = 0; count < FAILURES_MAX - 1; count++) {
      const decision = decideRetry(broken, times, count);
      assert.ok('retryInMs' in decision);
      waits.push(decision.retryInMs);
      times.push(count);
    }
    assert.deepEqual(
      waits,
      waits.toSorted((one, other) => one - other),
    );
    assert.ok('giveUp' in decideRetry(broken, times, FAILURES_MAX));
    assert.ok(
      'retryInMs' in decideRetry(broken, times, FAILURES_MAX + FAILURE_WINDOW_MS),
      'old failures are forgotten',
    );
  });
});
