import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Runner, race } from './race.ts';

const TURN_MS = 120_000;
const FAST = 64 * 1024 * 1024;

function createRunner() {
  const { promise: ended, resolve } = Promise.withResolvers<boolean>();
  const state = { bytes: 0, isEnded: false };
  const runner: Runner = {
    ended,
    bytes: () => state.bytes,
    end: () => {
      state.isEnded = true;
      resolve(false);
    },
  };
  return { state, runner, resolve };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

test('beside one that sends slowly the next is asked, and the slower of two makes way for a third', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const runners = Array.from({ length: 3 }, createRunner);
  const [first, second, third] = runners as [
    ReturnType<typeof createRunner>,
    ReturnType<typeof createRunner>,
    ReturnType<typeof createRunner>,
  ];
  const slow: boolean[] = [];
  const racing = race((isSlow) => {
    const next = runners[slow.length];
    if (next) slow.push(isSlow);
    return next?.runner;
  });
  const turn = async (...bytes: number[]) => {
    for (const [at, count] of bytes.entries()) runners[at]!.state.bytes += count;
    t.mock.timers.tick(TURN_MS);
    await settle();
    return slow.length;
  };
  assert.equal(await turn(FAST), 1, 'one that sends fast goes on alone');
  assert.equal(await turn(FAST - 1), 2);
  assert.deepEqual([first.state.isEnded, second.state.isEnded], [false, false]);
  assert.equal(await turn(0, FAST), 2, 'one of two sends fast');
  assert.equal(await turn(10, 9), 3);
  assert.deepEqual([first.state.isEnded, second.state.isEnded], [false, true]);
  await turn(1, 0, 1_000);
  assert.equal(first.state.isEnded, false, 'where there is no other, what came slowly is kept');
  third.resolve(false);
  await settle();
  first.resolve(true);
  assert.equal(await racing, true);
  assert.deepEqual(slow, [false, true, true]);
});

test('one after another is asked while they fail, and nothing is left when one brings it, or none does', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const ask = (brings: readonly boolean[]) => {
    const left = [...brings];
    return race(() => {
      const isHere = left.shift();
      return isHere === undefined
        ? undefined
        : { ended: Promise.resolve(isHere), bytes: () => 0, end: () => {} };
    });
  };
  assert.equal(await ask([]), false);
  assert.equal(await ask([false, false]), false);
  assert.equal(await ask([false, true]), true);
  const slow = createRunner();
  const whole = createRunner();
  const left = [slow, whole];
  const racing = race(() => left.shift()?.runner);
  await settle();
  t.mock.timers.tick(TURN_MS);
  await settle();
  whole.resolve(true);
  assert.equal(await racing, true);
  assert.equal(slow.state.isEnded, true);
});
