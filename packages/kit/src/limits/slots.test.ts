import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Slots } from './slots.ts';

test('so many at a time, in the order of asking; giving back twice counts once', async () => {
  const slots = new Slots(1);
  const first = await slots.take();
  const order: string[] = [];
  const second = slots.take().then((slot) => [order.push('second'), slot] as const);
  const third = slots.take().then((slot) => [order.push('third'), slot] as const);
  assert.ok(slots.isFull);
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  const [, slot] = await second;
  await turn();
  assert.deepEqual(order, ['second']);
  slot[Symbol.dispose]();
  await third;
  assert.deepEqual(order, ['second', 'third']);
});

test('a task gives its slot back however it ends', async () => {
  const slots = new Slots(2);
  let running = 0;
  let most = 0;
  const ends = await Promise.allSettled(
    Array.from({ length: 20 }, (_, index) =>
      slots.run(async () => {
        most = Math.max(most, ++running);
        await turn();
        running--;
        if (index % 2 === 0) throw new Error('failed');
        return index;
      }),
    ),
  );
  assert.deepEqual([most, running, slots.isFull], [2, 0, false]);
  assert.equal(ends.filter(({ status }) => status === 'rejected').length, 10);
});

test('who leaves the line does not take a turn', async () => {
  const slots = new Slots(1);
  const first = await slots.take();
  const leaving = new AbortController();
  const left = slots.take(leaving.signal);
  leaving.abort(new Error('left'));
  await assert.rejects(left, /left/);
  await assert.rejects(slots.take(leaving.signal), /left/);
  first[Symbol.dispose]();
  assert.ok(!slots.isFull);
});

test('who leaves as its turn comes takes nobody with it', async () => {
  const slots = new Slots(1);
  const first = await slots.take();
  const leaving = new AbortController();
  const second = slots.take(leaving.signal);
  const third = slots.take();
  first[Symbol.dispose]();
  leaving.abort(new Error('left'));
  (await second)[Symbol.dispose]();
  (await third)[Symbol.dispose]();
  assert.ok(!slots.isFull);
});

test('a line that is full or does not move refuses', async () => {
  const slots = new Slots(1, { waitingMax: 1, waitMs: 20, refusal: 'too many wait' });
  const first = await slots.take();
  const late = assert.rejects(slots.take(), { code: 'OVERLOADED', message: /too many wait/ });
  await assert.rejects(slots.take(), { code: 'OVERLOADED' });
  await late;
  const patient = slots.take();
  first[Symbol.dispose]();
  (await patient)[Symbol.dispose]();
  assert.ok(!slots.isFull);
});
