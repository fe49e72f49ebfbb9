import { test } from 'node:test';
import { playScenario } from './testing/play.ts';

/** Building an image, and some six boots under software emulation on a busy machine. */
const DEADLINE_MS = 45 * 60_000;

test(
  'an instance lives through the loss of its node process, its QEMU and its host',
  {
    timeout: DEADLINE_MS,
  },
  () => playScenario('two-hosts.ts'),
);
