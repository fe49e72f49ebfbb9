import { join } from 'node:path';
import { test } from 'node:test';
import { buildImage, runAlone } from '../../apps/cli/src/testing/alone.ts';

const isRoot = process.geteuid?.() === 0;

/**
 * The whole network, used as a newcomer would: by the command line, curl and ssh, and in a real browser by clicks alone. The image
 * is built first, where the network is; the rest runs in a network namespace of its own, so that ports, taps and firewall are
 * nobody else's.
 */
test('a machine made with a signed message answers under its four-word name, through the loss of every daemon; another one is made, copied and deleted by clicks', {
  skip: isRoot ? false : 'virtual machines need the right to make network interfaces: run as root',
}, async () => {
  await buildImage();
  await runAlone(join(import.meta.dirname, 'scenario.ts'));
});
