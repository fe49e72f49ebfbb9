import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const SKERRY = fileURLToPath(new URL('../bin/skerry.js', import.meta.url));
const SCENARIO = fileURLToPath(new URL('./testing/first-light.ts', import.meta.url));
const isRoot = process.geteuid?.() === 0;

async function run(command: string, args: readonly string[]): Promise<void> {
  const child = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  const [code] = (await once(child, 'exit')) as [number | null];
  assert.equal(code, 0, `${command} ${args.join(' ')} failed; its last words are above`);
}

/**
 * The whole network, used as a newcomer would: by the command line, curl and ssh. The image is built first, where the
 * network is; the rest runs in a network namespace of its own, so that ports, taps and firewall are nobody else's.
 */
test('a machine made with a signed message answers under its four-word name, through the loss of every daemon', {
  skip: isRoot ? false : 'virtual machines need the right to make network interfaces: run as root',
}, async () => {
  await run(process.execPath, [SKERRY, 'image', 'build', 'debian:12']);
  await run('unshare', ['--net', '--', process.execPath, SCENARIO]);
});
