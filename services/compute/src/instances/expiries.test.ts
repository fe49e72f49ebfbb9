import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { Expiries } from './expiries.ts';
import type { InstanceRecord } from './record/record.ts';
import type { IdleInstance } from './worker/owner-tasks.ts';
import type { InstanceWorker } from './worker/worker.ts';

/** An instance whose QEMU is not here. */
class Machine {
  record = { id: 'a' } as InstanceRecord;
  stops = 0;
  busy = 0;
  isDone = false;

  async runTask<T>(task: (instance: IdleInstance) => Promise<T>): Promise<T> {
    if (this.busy-- > 0) throw new Error('busy');
    return task({
      record: this.record,
      stop: async () => void this.stops++,
      update: async (change: Partial<InstanceRecord>) => {
        this.record = { ...this.record, ...change };
      },
    } as unknown as IdleInstance);
  }
}

const settle = async () => {
  for (let n = 0; n < 10; n++) await null;
};

test('an instance is stopped at its time, however the clock was set meanwhile', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let clockMs = 1_000_000;
  const expiries = new Expiries({ now: () => clockMs, log: createLogger('test', 'silent') });
  const machine = new Machine();
  const pass = async (milliseconds: number) => {
    clockMs += milliseconds;
    t.mock.timers.tick(milliseconds);
    await settle();
  };
  await expiries.set(machine as unknown as InstanceWorker, clockMs + 50_000);
  clockMs -= 20_000;
  await pass(50_000);
  assert.equal(machine.stops, 0);
  await pass(20_000);
  assert.equal(machine.stops, 1);
  await expiries.set(machine as unknown as InstanceWorker, clockMs + 3_600_000);
  clockMs += 3_600_000;
  await pass(60_000);
  assert.equal(machine.stops, 2);
});

test('an instance is stopped at the time that was chosen last, also by the next process and where it was busy', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000 });
  const log = createLogger('test', 'silent');
  const open = () => new Expiries({ now: () => Date.now(), log });
  const machine = new Machine();
  const worker = machine as unknown as InstanceWorker;
  const first = open();
  await first.set(worker, 61_000);
  await first.set(worker, 121_000);
  t.mock.timers.tick(60_000);
  await settle();
  assert.equal(machine.stops, 0);
  machine.busy = 1;
  open().resume(worker);
  t.mock.timers.tick(60_000);
  await settle();
  t.mock.timers.tick(30_000);
  await settle();
  const { isPoweredOff, isOwnerStopped, expiresAtMs } = machine.record;
  assert.deepEqual([machine.stops, isPoweredOff, isOwnerStopped, expiresAtMs], [1, true, true, undefined]);
});
