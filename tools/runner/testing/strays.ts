import { once } from 'node:events';
import { test } from 'node:test';

/** A test file in which something is thrown that no test waits for. */
test('something is thrown beside it', async () => {
  const thrown = once(process, 'uncaughtException');
  setImmediate(() => {
    throw new Error('nobody waits for this');
  });
  await thrown;
});
