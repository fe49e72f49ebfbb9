import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { CoreClient, createSigner, generatePrivateKey } from '@skerry/client';
import { createLogger, readConfig } from '@skerry/kit';
import { monitorConfig } from './config.ts';
import { HourStore } from './hour-store.ts';
import { Targets } from './monitor.ts';
import { startNode } from './testing/scene.ts';

test('whatever of its references a core node refuses, nodes are measured', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'skerry-monitor-'));
  const refused: string[] = [];
  await using core = await startNode((request, response) => {
    const isPost = request.method === 'POST';
    if (isPost) refused.push(request.url!);
    const code = isPost ? 'CREDIT_INSUFFICIENT' : 'AGGREGATE_NOT_FOUND';
    response.writeHead(isPost ? 402 : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ status: 'error', code, error: 'no' }));
  });
  const list = async (settings: Record<string, string>) => {
    const config = readConfig(monitorConfig, {
      SKERRY_MONITOR_CORE_URL: core.url.replace(/\/$/, ''),
      SKERRY_MONITOR_ANNOUNCED_NODES: 'false',
      SKERRY_MONITOR_RELEASES: 'skerry@1.0.0',
      ...settings,
    });
    const log = createLogger('monitor', 'silent');
    const { signal } = new AbortController();
    const privateKey = generatePrivateKey();
    const signer = createSigner(privateKey);
    const client = new CoreClient({ url: config.coreUrl, signer, signal });
    const store = await HourStore.create(join(dir, 'hours'), log);
    const parts = { privateKey, signer, core: client, store, trusted: undefined, signal, log };
    return (await Targets.create(config, parts)).list();
  };
  // A list and a file of the monitor's own, and those that somebody else keeps: each thing is tried by itself.
  assert.equal((await list({})).length, 1);
  const nodes = await list({
    SKERRY_MONITOR_NODE_LIST_OWNER: `0x${'ab'.repeat(20)}`,
    SKERRY_MONITOR_CORE_NODES: 'http://core.test',
    SKERRY_MONITOR_REFERENCE_FILE: 'a'.repeat(64),
  });
  assert.deepEqual([nodes.length, refused.length], [1, 4]);
  await rm(dir, { recursive: true });
});
