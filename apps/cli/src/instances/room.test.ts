import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { ANY_TIME, verifySubmission } from '@skerry/protocol';
import type { NodeView } from '@skerry/protocol/api/scheduler';
import { skerryHere } from '../testing/here.ts';
import { replying } from '../testing/replying.ts';
import { createTestDir, RUNNING } from '../testing/run.ts';

const size = (cpu: number, memory_mib = 8_192, disk_gib = 100) => ({ cpu, memory_mib, disk_gib });

const nodeWith = (cpu: number, more: Partial<NodeView> = {}): NodeView => ({
  ...{ node_id: 'a'.repeat(64), url: null, ipv6: null, supports_ipv6: true, address: `0x${'1'.repeat(40)}` },
  ...{ version: '0.1.0', features: [], capacity: size(cpu), limits: size(cpu), used: size(0, 0, 0) },
  ...{ free: size(cpu), instances: 0, healthy: true, reason: null, leaving: null, trust: 'listed' },
  ...{ score: null, weight: 1, announced_at: 1 },
  ...more,
});

const WHY = ['needs more virtual cores than the freest of 2 nodes has free'];

/** A network with one node of eight cores, six of them taken, which accepts every message. */
async function startNetwork() {
  const nodes = [nodeWith(8, { free: size(2) })];
  let taken: string | undefined;
  const take = async (body: string) => {
    const { itemHash: item_hash } = verifySubmission(body, ANY_TIME);
    taken = item_hash;
    return JSON.stringify({ item_hash, status: 'success', instance_id: item_hash, ipv6: '' });
  };
  const service = await replying(({ pathname, searchParams }, response) => {
    if (response.req.method === 'POST') {
      void text(response.req).then(async (body) => response.end(await take(body)));
      return response;
    }
    if (pathname === '/api/v0/instances') {
      const pagination = { page: 1, per_page: 100, total: 0, total_pages: 1 };
      return { instances: [], pagination, next_cursor: null, cursor: '1' };
    }
    if (pathname === '/api/v0/nodes') return { nodes };
    if (pathname === '/api/v0/simulate') {
      const schedulable = Number(searchParams.get('vcpus')) <= 2;
      if (!schedulable) response.statusCode = 503;
      return schedulable ? { schedulable, reasons: [] } : { schedulable, reasons: WHY, code: 'NO_CAPACITY' };
    }
    return pathname === `/api/v0/instances/${taken}` ? { ...RUNNING, instance_id: taken } : undefined;
  });
  const home = await createTestDir();
  const key = join(home.path, 'key.pub');
  await writeFile(key, `ssh-ed25519 ${'A'.repeat(68)} me`);
  const variables = {
    ...{ SKERRY_HOME: home.path, HOME: home.path },
    ...{ SKERRY_CORE_URL: service.url, SKERRY_SCHEDULER_URL: service.url },
  };
  await skerryHere(variables, ['key', 'new']);
  return {
    taken: () => taken,
    create: (...args: string[]) =>
      skerryHere(variables, ['instance', 'create', '--name', 'web', '--ssh-key', key, ...args]),
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      await home[Symbol.asyncDispose]();
    },
  };
}

test('an instance that no node is large enough for is not signed unless its owner agrees', async () => {
  await using network = await startNetwork();
  for (const more of [[], ['--json']]) {
    const { code, out, err } = await network.create('--cpu', '64', ...more);
    assert.deepEqual([code, out, network.taken()], [1, '', undefined], err);
    assert.match(err, /large enough for 64 cores.*at most 8 cores.*CONFIRMATION_REQUIRED/s);
    assert.match(err, /--yes/);
  }
  const { code, err } = await network.create('--cpu', '64', '--yes');
  assert.deepEqual([code, network.taken() === undefined], [0, false], err);
  assert.match(err, /at most 8 cores/);
});

test('one that would wait for room is told so, and one that finds it is told nothing', async () => {
  await using network = await startNetwork();
  const waiting = await network.create('--cpu', '4');
  assert.equal(waiting.code, 0, waiting.err);
  assert.match(
    waiting.err,
    /no compute node has room for it now \(needs more virtual cores.*\): it waits for one/,
  );
  const placed = await network.create('--cpu', '2');
  assert.equal(placed.code, 0, placed.err);
  assert.doesNotMatch(placed.err, /room|large enough/);
});

test('what an instance may not have is said of the option that asked for it', async () => {
  await using network = await startNetwork();
  const refusals: [string, string, RegExp][] = [
    ['--cpu', '1000', /^error: --cpu must be an integer from 1 to [0-9]+ \(INVALID_CONTENT\)/],
    ['--memory', '9999999G', /^error: --memory \(MiB\) must be an integer from [0-9]+ to [0-9]+ /],
    ['--image', 'a b', /^error: --image must match pattern /],
  ];
  for (const [option, value, expected] of refusals) {
    const { code, err } = await network.create(option, value);
    assert.deepEqual([code, network.taken()], [2, undefined], err);
    assert.match(err, expected);
  }
});
