import { test } from 'node:test';
import { playScenario } from './testing/play.ts';

/** Building an image, and some ten boots under software emulation on a busy machine. */
const DEADLINE_MS = 45 * 60_000;

test('a compute node runs real virtual machines', { timeout: DEADLINE_MS }, () =>
  playScenario('vm-scenario.ts'),
);

test('snapshots, restore, backup and reinstall of a real machine', { timeout: DEADLINE_MS }, () =>
  playScenario('vm-disks.ts'),
);
