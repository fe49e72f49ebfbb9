import { test } from 'node:test';
import { converge } from './testing/convergence.ts';

test('three core nodes, one killed and one cut off while messages come: all end with the same', (t) =>
  converge(t, { messages: 200, filesEvery: 20, partitionMs: 1_500, agreeWithinMs: 240_000 }));
