import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { enterPhase, instanceDirectory, newRecord, readRecords, writeRecord } from './record.ts';
import { Slots } from './slots.ts';
import { judgeTrouble, PASSING_RETRY_MAX_MS, reasonOf, TROUBLE_LIMIT, TROUBLE_WINDOW_MS } from './trouble.ts';

const wanted = {
  isRunning: true,
  restartId: null,
  cpu: 1,
  memoryMib: 512,
  diskGib: 4,
  image: 'debian:12',
  sshKey: 'k',
  allowedPorts: [22],
};

describe('trouble', () => {
  const broken = new AppError('VM_START_FAILED', 'no');

  test('what no retry can mend is given up at once', () => {
    assert.deepEqual(judgeTrouble(new AppError('UNKNOWN_IMAGE', 'none'), [], 0), {
      giveUp: { code: 'UNKNOWN_IMAGE', message: 'none' },
    });
  });

  test('what the machine lacks for now is tried for as long as it takes', () => {
    const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    const times = Array.from({ length: 4 * TROUBLE_LIMIT }, (_, index) => index);
    for (const error of [
      full,
      new AppError('STORAGE_FULL', 'full'),
      new AppError('NO_CAPACITY', 'no memory'),
    ])
      assert.deepEqual(judgeTrouble(error, times, times.length), { retryInMs: PASSING_RETRY_MAX_MS });
    assert.equal(reasonOf(full).code, 'STORAGE_FULL');
  });

  test('else it is tried again, after longer and longer, up to a limit', () => {
    const waits: number[] = [];
    const times: number[] = [];
    for (let count = 0; count < TROUBLE_LIMIT - 1; count++) {
      const verdict = judgeTrouble(broken, times, count);
      assert.ok('retryInMs' in verdict);
      waits.push(verdict.retryInMs);
      times.push(count);
    }
    assert.deepEqual(
      waits,
      waits.toSorted((one, other) => one - other),
    );
    assert.ok('giveUp' in judgeTrouble(broken, times, TROUBLE_LIMIT));
    assert.ok(
      'retryInMs' in judgeTrouble(broken, times, TROUBLE_LIMIT + TROUBLE_WINDOW_MS),
      'old troubles are forgotten',
    );
  });
});

describe('slots', () => {
  const never = new AbortController().signal;

  test('so many at a time, in the order of asking; giving back twice counts once', async () => {
    const slots = new Slots(1);
    const first = await slots.acquire(never);
    const order: string[] = [];
    const second = slots.acquire(never).then((free) => [order.push('second'), free] as const);
    const third = slots.acquire(never).then((free) => [order.push('third'), free] as const);
    assert.ok(slots.isFull);
    first();
    first();
    const [, freeSecond] = await second;
    assert.deepEqual(order, ['second']);
    freeSecond();
    await third;
    assert.deepEqual(order, ['second', 'third']);
  });

  test('who leaves the line does not take a turn', async () => {
    const slots = new Slots(1);
    const first = await slots.acquire(never);
    const leaving = new AbortController();
    const left = slots.acquire(leaving.signal);
    leaving.abort(new Error('left'));
    await assert.rejects(left, /left/);
    first();
    assert.ok(!slots.isFull);
  });
});

describe('records', () => {
  test('are read back; a damaged one is left alone and does not hide the others', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'skerry-records-'));
    try {
      const log = createLogger('test', 'silent');
      assert.deepEqual(await readRecords(dataDir, log), []);
      const record = newRecord('a'.repeat(64), wanted, 5);
      await writeRecord(dataDir, record);
      const damaged = newRecord('b'.repeat(64), wanted, 5);
      await writeRecord(dataDir, damaged);
      await writeFile(join(instanceDirectory(dataDir, damaged.id), 'vm.json'), '{"version":1');
      assert.deepEqual(await readRecords(dataDir, log), [record]);
    } finally {
      await rm(dataDir, { recursive: true, force: true });
    }
  });

  test('entering a phase forgets the times of later ones', () => {
    const times = { scheduled: 1, preparing: 2, starting: 3, running: 4, stopping: 5, stopped: 6 };
    assert.deepEqual(enterPhase(times, 'starting', 9), { scheduled: 1, preparing: 2, starting: 9 });
    assert.deepEqual(enterPhase({ scheduled: 1 }, 'preparing', 2), { scheduled: 1, preparing: 2 });
  });
});
