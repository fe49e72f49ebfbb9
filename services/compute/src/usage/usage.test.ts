import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { createHttpServer, createLogger, serveAll } from '@skerry/kit';
import { hear } from '@skerry/kit/testing/heard';
import { awaitOutput } from '@skerry/kit/testing/processes';
import { USAGE_API } from '@skerry/protocol/api/compute/usage';
import { usageIn } from '../groups/control-group.ts';
import { parseKib, parseTimes, readProcessUsage } from '../host/process-usage.ts';
import { inDirectory } from '../testing/directory.ts';
import { parseDevices } from './devices.ts';
import { createUsageMetrics } from './metrics.ts';
import { usageHandlers } from './routes.ts';
import { instanceUsage, programUsage } from './usage.ts';

const ID = 'a'.repeat(64);
const RECORD = {
  id: ID,
  wanted: {
    ...{ isRunning: true, owner: '0x1', restartId: null, cpu: 2, memoryMib: 512, diskGib: 4 },
    ...{ image: 'debian:12', sshKey: '', allowedPorts: [22] },
  },
  status: { phase: 'running', reason: null, observedAtMs: 1, restartId: null },
} as const;
const DEVICE = { receivedBytes: 1, receivedPackets: 2, sentBytes: 3, sentPackets: 4 };
const PROCESS = { startedAtMs: 1_000, cpuSeconds: 12.5, memoryBytes: 4_096 };

test('what the kernel tells of processes, interfaces and control groups is read, whatever their names', () => {
  const numbers = Array.from({ length: 40 }, (_, index) => index);
  // As prctl(2) lets a process call itself.
  const stat = `77 (a) S 9 (b)) ${['S', ...numbers].join(' ')}\n`;
  assert.deepEqual(parseTimes(stat), { cpuSeconds: 0.21, waitedSeconds: 0.25, startedSeconds: 0.18 });
  assert.equal(parseKib('VmRSS:\t   12 kB\nRssAnon:\t      34 kB\nRssFile: 1 kB\n', 'RssAnon'), 34 * 1024);
  assert.equal(parseKib('', 'RssAnon'), undefined);
  const devices = parseDevices(
    `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 10 11 0 0 0 0 0 0 12 13 0 0 0 0 0 0
s0123456789abcd:1 2 0 0 0 0 0 0 3 4 0 0 0 0 0 0
`,
  );
  assert.deepEqual(devices.get('s0123456789abcd'), DEVICE);
  assert.deepEqual([...devices.keys()], ['lo', 's0123456789abcd']);
  const files: Record<string, string> = {
    'cpu.stat': 'usage_usec 1500000\nuser_usec 7\n',
    'memory.current': '4096\n',
    'cpuacct.usage': '2500000000\n',
    'memory.usage_in_bytes': '8192\n',
  };
  const readText = (file: string) => files[file] ?? '';
  assert.deepEqual(usageIn(2, readText), { cpuSeconds: 1.5, memoryBytes: 4_096 });
  assert.deepEqual(usageIn(1, readText), { cpuSeconds: 2.5, memoryBytes: 8_192 });
  for (const version of [1, 2] as const)
    assert.deepEqual(
      usageIn(version, () => ''),
      { cpuSeconds: null, memoryBytes: null },
    );
});

test('the figures of a process are those of this one, and none are made up for one that is gone', async () => {
  const usage = await readProcessUsage(process.pid);
  assert.ok(usage);
  const own = process.cpuUsage();
  const seconds = (own.user + own.system) / 1e6;
  assert.ok(usage.cpuSeconds > 0 && usage.cpuSeconds <= seconds + 0.1);
  assert.ok(usage.memoryBytes > 1024 ** 2 && usage.memoryBytes < 2 * process.memoryUsage.rss());
  assert.ok(Math.abs(usage.startedAtMs - (Date.now() - process.uptime() * 1_000)) < 2_500);
  assert.equal(await readProcessUsage(2 ** 30), undefined);
});

test('the memory of a process is what the kernel counts of it, files left out: no page is looked at', async () => {
  // Its own memory no longer changes once it has said that it is there.
  const child = spawn('sh', ['-c', 'echo here; read line'], { stdio: ['pipe', 'pipe', 'pipe'] });
  try {
    await awaitOutput(child, 'the shell', hear(child, ['stderr']));
    const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
    const [, kib] = /^RssAnon:\s+([0-9]+) kB$/m.exec(status)!;
    assert.equal((await readProcessUsage(child.pid!))?.memoryBytes, Number(kib) * 1024);
  } finally {
    child.stdin.end();
    await once(child, 'close');
  }
});

test('a tap receives what its guest sends; what does not run has no figures of a process', () => {
  const running = instanceUsage(RECORD, { process: PROCESS, device: DEVICE, diskBytes: 5 });
  assert.deepEqual(running.network, { in_bytes: 3, out_bytes: 1, in_packets: 4, out_packets: 2 });
  assert.deepEqual(running.disk, { bytes: 5, granted_bytes: 4 * 1024 ** 3 });
  const off = instanceUsage(RECORD, { process: undefined, device: undefined, diskBytes: 5 });
  assert.deepEqual([off.since, off.cpu.seconds, off.memory.bytes, off.network], [null, null, null, null]);
});

test('a program takes what all of its sandboxes take, from the oldest on', () => {
  const one = { hash: ID, owner: '0x1', reservedMib: 128, cpus: 1, startedAtMs: 2_000 };
  const sandboxes = [
    { ...one, cpuSeconds: 1, memoryBytes: 10 },
    { ...one, cpuSeconds: 2, memoryBytes: 20, startedAtMs: 1_000 },
  ];
  const usage = programUsage(ID, sandboxes);
  assert.deepEqual(
    [usage.since, usage.cpu, usage.memory],
    ['1970-01-01T00:00:01.000Z', { seconds: 3, granted: 2 }, { bytes: 30, granted_bytes: 256 * 1024 ** 2 }],
  );
  const untold = programUsage(ID, [...sandboxes, { ...one, owner: '', cpuSeconds: null, memoryBytes: 1 }]);
  assert.deepEqual([untold.cpu.seconds, untold.memory.bytes], [null, 31]);
});

test('instances are labels of metrics, and only so many', async () => {
  const idOf = (index: number) => index.toString(16).padStart(64, '0');
  const guests = Array.from({ length: 300 }, (_, index) =>
    instanceUsage({ ...RECORD, id: idOf(index) }, { process: PROCESS, device: DEVICE, diskBytes: 5 }),
  );
  const metrics = await createUsageMetrics({
    read: async () => ({ read_at: '', guests }),
    readPrograms: () => ({ cpuSeconds: null, memoryBytes: 7 }),
  });
  const text = await metrics.text();
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  assert.equal(new Set(text.match(/instance="[0-9a-f]+"/g)).size, 256);
  assert.ok(lines.length < 256 * 10);
  for (const line of [
    `instance_cpu_seconds_total{instance="${idOf(0)}"} 12.5`,
    `instance_network_bytes_total{instance="${idOf(255)}",direction="in"} 3`,
    `instance_network_packets_total{instance="${idOf(255)}",direction="out"} 2`,
    'instances 300',
    'instances_running 300',
    'instances_without_labels 44',
    'programs_memory_bytes 7',
  ])
    assert.ok(lines.includes(`skerry_compute_${line}`), line);
  assert.ok(!lines.some((line) => line.startsWith('skerry_compute_programs_cpu_seconds_total')));
});

test('what guests use is told those whom the operator lets read it, and nobody behind a proxy', () =>
  inDirectory(async (dataDir) => {
    const app = await createHttpServer({ log: createLogger('test', 'silent') });
    const readers = { trustedProxies: ['127.0.0.9'], usageReaders: ['127.0.0.1', '198.51.100.0/24'] };
    const sources = { dataDir, instances: { list: () => [] }, programs: undefined, now: Date.now };
    serveAll(app, USAGE_API, usageHandlers({ ...sources, readers }));
    const ask = async (url: string, remoteAddress: string, forwarded?: string) => {
      const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded };
      return (await app.inject({ url, remoteAddress, headers })).statusCode;
    };
    const lies = ['127.0.0.1, 203.0.113.7', '127.0.0.1, 203.0.113.7, 127.0.0.9', '127.0.0.1, unknown'];
    for (const { path } of Object.values(USAGE_API)) {
      assert.equal(await ask(path, '127.0.0.1'), 200);
      assert.equal(await ask(path, '203.0.113.7'), 403);
      assert.equal(await ask(path, '127.0.0.1', '198.51.100.7'), 403, 'a proxy that is not trusted');
      assert.equal(await ask(path, '127.0.0.9', '198.51.100.7'), 200);
      assert.equal(await ask(path, '127.0.0.9', '203.0.113.7'), 403);
      for (const lie of lies) assert.equal(await ask(path, '127.0.0.9', lie), 403, lie);
      const page = { url: path, remoteAddress: '127.0.0.1', headers: { origin: 'https://page.example' } };
      assert.equal((await app.inject(page)).statusCode, 403, 'a page in a browser of this server');
    }
    await app.close();
  }));
