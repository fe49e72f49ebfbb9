import { test } from 'node:test';
import { checkVersion2 } from './testing/http3-v2.ts';

const isRoot = process.geteuid?.() === 0;

test("Chromium and ngtcp2's client fetch over QUIC version 2 through the gateway", {
  skip: isRoot ? false : 'only root may have a hosts file of its own',
}, async () => {
  await checkVersion2(128 * 1024 * 1024, console.log);
});
