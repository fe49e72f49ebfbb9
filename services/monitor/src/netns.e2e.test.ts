import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { playProgram } from '@skerry/kit/testing/play';

const run = promisify(execFile);
const SCENARIO = fileURLToPath(new URL('./testing/namespaces.ts', import.meta.url));
const isRoot = process.geteuid?.() === 0;

/** Nodes in network namespaces of their own, measured over real IPv6, IPv4 and ICMP (testing/namespaces.ts). */
test('a compute node and its machine in a network of their own: both families, and the ping', {
  skip: isRoot ? false : 'making network interfaces needs root',
}, async () => {
  await run('ip', ['-V']);
  // A namespace of its own for the monitor's side too: nothing of this machine is touched, and all of it goes with the process.
  await playProgram('the scenario', 'unshare', ['--net', '--mount', '--', process.execPath, SCENARIO]);
});
