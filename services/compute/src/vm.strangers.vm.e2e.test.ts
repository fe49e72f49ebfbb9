import { test } from 'node:test';
import { playScenario } from './testing/play.ts';

/** Building an image, and two boots of a tiny guest under software emulation on a busy machine. */
const DEADLINE_MS = 20 * 60_000;

test(
  'M6: a machine runs, is backed up and gets another disk by programs without rights',
  {
    timeout: DEADLINE_MS,
  },
  () => playScenario('vm-strangers.ts'),
);
