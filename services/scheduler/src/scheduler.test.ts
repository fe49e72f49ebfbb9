import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createSigner } from '@skerry/client';
import { createLogger, readConfig } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { schedulerService } from './index.ts';

test('settings: defaults, a list of nodes in one spelling, and every problem at once', () => {
  const config = readConfig(schedulerService.config, { SKERRY_HOME: '/home/somebody' });
  assert.deepEqual(config, {
    host: 'localhost',
    port: 4030,
    coreUrl: 'http://localhost:4024',
    dataDir: '/home/somebody/data/scheduler',
    probeIntervalSeconds: 10,
    cpuOvercommit: 4,
    nodes: [],
    trust: 'measured',
    allowPrivate: false,
    drain: [],
    graceSeconds: 900,
    publicPrefixes: false,
    scoringPublishers: [],
    scoreMinPercent: 0,
    peers: [],
    takeoverSeconds: 10,
    rateLimits: true,
    rateGeneral: 100,
    rateExempt: ['127.0.0.0/8', '::1'],
    trustedProxies: [],
  });
  const nodes = `0x${'AB'.repeat(20)}, 0x${'cd'.repeat(20)}`;
  assert.deepEqual(readConfig(schedulerService.config, { SKERRY_SCHEDULER_NODES: nodes }).nodes, [
    `0x${'ab'.repeat(20)}`,
    `0x${'cd'.repeat(20)}`,
  ]);
  assert.throws(
    () =>
      readConfig(schedulerService.config, {
        SKERRY_SCHEDULER_NODES: 'somebody',
        SKERRY_SCHEDULER_CPU_OVERCOMMIT: '0',
        SKERRY_SCHEDULER_PROT: '1',
      }),
    (error) => error instanceof AppError && error.message.split('\n').length === 3,
  );
});

test('without a core node it serves, says so, keeps its key, and stops', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'skerry-scheduler-'));
  // A port that was free a moment ago and refuses.
  const closed = createServer().listen(0, '127.0.0.1');
  await once(closed, 'listening');
  const coreUrl = `http://127.0.0.1:${(closed.address() as AddressInfo).port}`;
  closed.close();
  await once(closed, 'close');
  try {
    const config = { ...readConfig(schedulerService.config, {}), port: 0, coreUrl, dataDir };
    const host = { log: createLogger('test', 'silent'), signal: new AbortController().signal };
    const addresses: string[] = [];
    for (let round = 0; round < 2; round++) {
      const running = await schedulerService.start(config, host);
      const [url] = running.urls;
      const planned = await fetch(`${url}/api/v0/plan`);
      assert.equal(planned.status, 503);
      const status = (await (await fetch(`${url}/status`)).json()) as Record<string, unknown>;
      assert.equal(status.status, 'degraded');
      addresses.push(status.address as string);
      await running[Symbol.asyncDispose]();
      await assert.rejects(fetch(`${url}/status`));
    }
    const key = await readFile(join(dataDir, 'key'), 'utf8');
    assert.deepEqual(addresses, Array(2).fill(createSigner(key).address));
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
});
