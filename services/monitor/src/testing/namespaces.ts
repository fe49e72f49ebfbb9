// A monitor and two compute nodes, each in a network namespace, joined by a bridge. Run by netns.e2e.test.ts in a namespace of its own.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createReach, pause } from '@skerry/kit';
import { awaitOutput } from '@skerry/kit/testing/processes';
import { DIAGNOSTIC_VM } from '@skerry/protocol';
import { measureNode } from '../probe/measure.ts';
import { ping } from '../probe/ping.ts';
import { nodeAt, probeOptionsOf } from './scene.ts';

const NODE_PROGRAM = fileURLToPath(new URL('./namespace-node.ts', import.meta.url));
const PORT = 4020;
/** The diagnostic program's address is the node's network, 1 for a program, and the first 44 bits. */
const VM_SUFFIX = '1:63fa:f8b5:db11';
const DELAY_MS = 20;

const ip = (...args: string[]) => execFileSync('ip', args, { stdio: ['ignore', 'pipe', 'inherit'] });
const MONITOR = { ipv4: '192.0.2.1', ipv6: '2001:db8:0:1::1' };
const NODES = [
  { ipv4: '192.0.2.11', prefix: '2001:db8:0:11', hasMachine: true },
  { ipv4: '192.0.2.12', prefix: '2001:db8:0:12', hasMachine: false },
];

/** A process in a new namespace, its end of a cable called `eth0`. */
async function startNode(index: number): Promise<void> {
  const { ipv4, prefix, hasMachine } = NODES[index]!;
  const child = spawn('unshare', ['--net', '--', process.execPath, NODE_PROGRAM], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  // It goes with this process: its input ends then.
  await awaitOutput(child, `node ${index}`);
  const cable = `cable${index}`;
  ip('link', 'add', cable, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(child.pid));
  ip('link', 'set', cable, 'master', 'bridge0', 'up');
  const inside = (...args: string[]) =>
    execFileSync('nsenter', ['--net', '--target', String(child.pid), '--', 'ip', ...args]);
  inside('link', 'set', 'lo', 'up');
  inside('link', 'set', 'eth0', 'up');
  inside('addr', 'add', `${ipv4}/24`, 'dev', 'eth0');
  for (const address of [`${prefix}::1`, ...(hasMachine ? [`${prefix}:${VM_SUFFIX}`] : [])])
    inside('addr', 'add', `${address}/128`, 'dev', 'eth0', 'nodad');
  inside('route', 'add', `${MONITOR.ipv6}/128`, 'dev', 'eth0');
  ip('route', 'add', `${prefix}::/64`, 'dev', 'bridge0');
  child.stdin.write(
    `${JSON.stringify({ port: PORT, addresses: [ipv4, `${prefix}::1`], delayMs: DELAY_MS })}\n`,
  );
  await awaitOutput(child, `node ${index}`);
}

ip('link', 'set', 'lo', 'up');
ip('link', 'add', 'bridge0', 'type', 'bridge');
ip('link', 'set', 'bridge0', 'up');
ip('addr', 'add', `${MONITOR.ipv4}/24`, 'dev', 'bridge0');
ip('addr', 'add', `${MONITOR.ipv6}/128`, 'dev', 'bridge0', 'nodad');
await startNode(0);
await startNode(1);

// Without a resolver a name is what a file says. The mounts of this process are its own, too.
const dir = mkdtempSync(join(tmpdir(), 'skerry-names-'));
const lineOf = (address: string, index: number) => `${address} node${index}.test\n`;
const names = NODES.flatMap(({ ipv4, prefix }, index) => [
  lineOf(ipv4, index),
  lineOf(`${prefix}::1`, index),
]);
writeFileSync(join(dir, 'hosts'), names.join(''));
execFileSync('mount', ['--bind', join(dir, 'hosts'), '/etc/hosts']);

const measure = (index: number, computeFamily: 0 | 6) =>
  measureNode(
    nodeAt('compute', `http://node${index}.test:${PORT}/`),
    probeOptionsOf({
      mayReach: createReach(true),
      ping,
      pause,
      computeFamily,
      diagnosticVm: DIAGNOSTIC_VM,
      now: Date.now,
    }),
  );

const [first, second] = await Promise.all([measure(0, 6), measure(1, 6)]);
for (const record of [first, second]) {
  for (const field of ['base_latency', 'base_latency_ipv4', 'diagnostic_vm_latency', 'full_check_latency'])
    assert.ok((record[field] as number) >= DELAY_MS / 1000, `${field} is ${record[field]}`);
  assert.equal(record.version, '9.9.9');
}
assert.deepEqual([first.ipv4, first.ipv6], [NODES[0]!.ipv4, `${NODES[0]!.prefix}::1`]);
// The echo goes to the machine's own address, which only the first node has.
const echo = first.diagnostic_vm_ping_latency as number;
assert.ok(echo > 0, `the ping took ${echo}`);
assert.equal(second.diagnostic_vm_ping_latency, undefined);

// The way to the second node's IPv6 address is lost: what is measured over IPv6 is gone, what is measured over IPv4 is there.
ip('route', 'add', 'unreachable', `${NODES[1]!.prefix}::1/128`);
const lost = await measure(1, 6);
assert.deepEqual(
  [lost.base_latency, lost.diagnostic_vm_latency, lost.full_check_latency],
  [undefined, undefined, undefined],
);
assert.ok((lost.base_latency_ipv4 as number) >= DELAY_MS / 1000);
console.log(`ping ${echo} s, IPv6 ${first.base_latency} s, IPv4 ${first.base_latency_ipv4} s`);
execFileSync('umount', ['/etc/hosts']);
rmSync(dir, { recursive: true });
process.exit(0);
