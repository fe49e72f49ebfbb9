import { test } from 'node:test';
import { buildImage, runAlone } from './testing/alone.ts';

test('Chromium fetches over HTTP/3 from Caddy in a virtual machine by its name, through the gateway of a whole network', async () => {
  await buildImage();
  await runAlone('http3-vm.ts');
});
