import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AppError } from '@skerry/protocol';
import { type IdleInstance, OwnerTaskQueue } from './owner-tasks.ts';

const isError = (code: string) => (error: unknown) => error instanceof AppError && error.code === code;

describe('owner tasks', () => {
  const instance = {} as IdleInstance;

  test('are done one after the other; a failure is told to who asked', async () => {
    const line = new OwnerTaskQueue();
    const first = line.run(async () => 1, 1_000);
    const second = line.run(async () => Promise.reject(new AppError('INTERNAL', 'no')), 1_000);
    await line.next(instance);
    await line.next(instance);
    assert.equal(await first, 1);
    await assert.rejects(second, isError('INTERNAL'));
    assert.ok(line.isEmpty);
  });

  test('one that cannot begin in time does not happen; too many are refused; an end is told', async () => {
    const line = new OwnerTaskQueue();
    let isDone = false;
    const late = line.run(async () => {
      isDone = true;
    }, 1);
    await assert.rejects(late, isError('INSTANCE_BUSY'));
    await line.next(instance);
    assert.equal(isDone, false);
    const waiting = Array.from({ length: 8 }, () => line.run(async () => {}, 60_000));
    await assert.rejects(
      line.run(async () => {}, 60_000),
      isError('INSTANCE_BUSY'),
    );
    line.close(new AppError('INSTANCE_NOT_FOUND', 'gone'));
    for (const one of waiting) await assert.rejects(one, isError('INSTANCE_NOT_FOUND'));
  });
});
