import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const SCENARIO = fileURLToPath(new URL('./testing/namespaces.ts', import.meta.url));
const isRoot = process.geteuid?.() === 0;

/** Nodes in network namespaces of their own, measured over real IPv6, IPv4 and ICMP (testing/namespaces.ts). */
test('a compute node and its machine in a network of their own: both families, and the ping', {
  skip: isRoot ? false : 'making network interfaces needs root',
}, async () => {
  await run('ip', ['-V']);
  // A namespace of its own for the monitor's side too: nothing of this machine is touched, and all of it goes with the process.
  const child = spawn('unshare', ['--net', '--mount', '--', process.execPath, SCENARIO], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  assert.equal(code, 0);
});
