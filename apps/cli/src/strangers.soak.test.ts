import { test } from 'node:test';
import { buildImage, runAlone } from './testing/alone.ts';

test('ten minutes of a hostile population beside honest users', async () => {
  await buildImage();
  await runAlone('strangers/scenario.ts', '--seconds', '600');
});
