import { test } from 'node:test';
import { playScenario } from './testing/play.ts';

/** Building an image, and one boot under software emulation on a busy machine. */
const DEADLINE_MS = 20 * 60_000;

test('a virtual machine boots, outlives its compute node, and stops', { timeout: DEADLINE_MS }, () =>
  playScenario('vm-short.ts'),
);
