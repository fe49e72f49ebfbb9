import { test } from 'node:test';
import { buildImage, runAlone } from './testing/alone.ts';

test('a server behind each data plane gets real certificates, by HTTP-01 and by TLS-ALPN-01', async () => {
  await runAlone('certificates.ts');
});

test('so does Caddy in a virtual machine, through the gateway of a whole network', async () => {
  await buildImage();
  await runAlone('certificates-vm.ts');
});
