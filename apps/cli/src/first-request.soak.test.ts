import { test } from 'node:test';
import { buildImage, runAlone } from './testing/alone.ts';

const RUNS = '20';

test('how long it takes from create --wait to the first answer through the gateway', async () => {
  await buildImage();
  await runAlone('first-request.ts', RUNS);
});
