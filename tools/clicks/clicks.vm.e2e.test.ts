import { join } from 'node:path';
import { test } from 'node:test';
import { buildImage, runAlone } from '../../apps/cli/src/testing/alone.ts';

const isRoot = process.geteuid?.() === 0;

/** 30 seconds of the processor, beside those of the emulated machine. */
test('in a real browser, by clicks alone: a key, a machine, its page under its name, copies of its disk, its end', {
  skip: isRoot ? false : 'virtual machines need the right to make network interfaces: run as root',
}, async () => {
  await buildImage();
  await runAlone(join(import.meta.dirname, 'scenario.ts'));
});
