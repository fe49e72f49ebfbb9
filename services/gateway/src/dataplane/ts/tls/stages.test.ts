import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { Faults } from '../faults.ts';
import { type Staged, Stages } from './stages.ts';

const TIMEOUT_MS = 160;

test('a fault at the end of a connection whose time is over closes that, and ends neither the process nor the others', (context) => {
  mock.timers.enable({ apis: ['setInterval'] });
  context.after(() => mock.timers.reset());
  const troubles: string[] = [];
  const faults = new Faults((_details, said) => troubles.push(said), 'a fault');
  const timeoutsMs = { undecided: TIMEOUT_MS, connecting: 1000, open: 1000, lingering: 1000 };
  const stages = new Stages<Staged>(timeoutsMs, faults);
  const silent = Array.from(
    { length: 2 },
    (): Staged => ({
      stage: undefined,
      tick: 0,
      onExpired() {
        throw new Error('a fault');
      },
      destroy() {
        stages.leave(this);
      },
    }),
  );
  for (const one of silent) stages.enter(one, 'undecided');
  mock.timers.tick(2 * TIMEOUT_MS);
  assert.equal(stages.size, 0);
  assert.equal(troubles.length, 1);
});
