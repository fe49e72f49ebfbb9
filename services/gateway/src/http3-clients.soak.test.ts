import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { checkNgtcp2, NGTCP2_CLIENT, NGTCP2_SERVER } from './testing/http3-clients.ts';

function whyNot(): string | false {
  const missing = [NGTCP2_CLIENT, NGTCP2_SERVER].find((name) => spawnSync(name, ['--help']).error);
  if (missing !== undefined)
    return `${missing} is not installed; on Debian it comes in ngtcp2-client and ngtcp2-server`;
  return process.geteuid?.() === 0 ? false : 'only root may have a hosts file of its own';
}
const skip = whyNot();

test("ngtcp2's client fetches over HTTP/3 from Caddy through the gateway, moving and losing as clients do", {
  skip,
}, async () => {
  await checkNgtcp2(32 * 1024 * 1024, console.log);
});
