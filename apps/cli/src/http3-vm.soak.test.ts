import { test } from 'node:test';
import { buildImage, runAlone } from './testing/alone.ts';

test('Chromium fetches over HTTP/3 from Caddy in a virtual machine by its name through the gateway of a whole network, and by a custom domain through the front of its node', async () => {
  await buildImage();
  await runAlone('http3-vm.ts');
});
