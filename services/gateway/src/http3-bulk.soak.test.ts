import { test } from 'node:test';
import { checkHttp3Bulk } from './testing/http3-bulk.ts';

const MIB = 1024 * 1024;

test('Chromium downloads 1 GiB over HTTP/3 through the gateway and uploads it again', async () => {
  await checkHttp3Bulk(1024 * MIB, console.log);
});

test('the same with 64 MiB, where one datagram in 100 is lost, one comes twice and one late', async () => {
  await checkHttp3Bulk(64 * MIB, console.log, 100);
});
