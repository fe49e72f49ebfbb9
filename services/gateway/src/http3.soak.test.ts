import { test } from 'node:test';
import { checkHttp3 } from './testing/http3.ts';

test('Chromium fetches 64 MiB over HTTP/3 from Caddy under two names through the gateway', async () => {
  await checkHttp3(64 * 1024 * 1024, console.log);
});
