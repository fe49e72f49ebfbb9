import { test } from 'node:test';
import { converge } from './testing/convergence.ts';

test('100,000 messages, one node killed and another cut off for a minute', { timeout: 3_600_000 }, (t) =>
  converge(t, { messages: 100_000, filesEvery: 1_000, partitionMs: 60_000, agreeWithinMs: 1_800_000 }),
);
