import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '@skerry/protocol/forms';
import { pause } from './pause.ts';
import { createPatience } from './reads/patience.ts';

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

test('a time limit that ends a wait leaves the refusal, whose code says what to do; another end its own reason', async () => {
  const refusal = new AppError('RATE_LIMITED', 'asked too often', { details: { retry_after: 60 } });
  const waitUntil = (reason: DOMException) => {
    const ending = new AbortController();
    const patiently = createPatience({ signal: ending.signal, onWait: () => ending.abort(reason) });
    return patiently(() => Promise.reject(refusal));
  };
  await assert.rejects(waitUntil(new DOMException('late', 'TimeoutError')), (error) => error === refusal);
  const stop = new DOMException('stopped', 'AbortError');
  await assert.rejects(waitUntil(stop), (error) => error === stop);
});
