import { test } from 'node:test';
import { pause } from './pause.ts';

test('a pause is none where the signal has ended, and ends with it', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  await pause(1, AbortSignal.abort());
  const ending = new AbortController();
  const paused = pause(1, ending.signal);
  ending.abort();
  await paused;
  const whole = pause(1, undefined);
  t.mock.timers.tick(1);
  await whole;
});
