import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { CoreClient, call, createSigner, generatePrivateKey } from '@skerry/client';
import { loadOrCreateKeyFile } from '@skerry/kit';
import type { InstanceView } from '@skerry/protocol';
import { SCHEDULER_API } from '@skerry/protocol/api/scheduler';
import { startCore } from '../testing/core.ts';
import { startDaemon } from '../testing/parts.ts';
import { findFreePorts } from '../testing/ports.ts';
import { until } from '../testing/shell.ts';
import { canHoldAddresses, FakeNode } from './testing/nodes.ts';

/** Only what hangs takes as long. */
const TIMEOUT_MS = 600_000;
const SSH_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Fh0uVwOqkFZkP3kCq5p8v0wYVqX5b0pD8kT3C1xYz';

const statusOf = (url: string) => call(url, SCHEDULER_API.getSchedulerStatus, {});

/** A compute node as the scheduler sees one: it announces itself and proves what it says. */
async function announceNode(coreUrl: string) {
  const node = await (await new FakeNode().listen()).hold();
  await node.announce(coreUrl);
  return node;
}

test('of two schedulers one leads; killed, the other takes over, moves nothing, and goes on', {
  skip: canHoldAddresses ? false : 'needs root on Linux',
}, async () => {
  const dir = await mkdtemp(join(tmpdir(), 'skerry-takeover-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(dir, { recursive: true, force: true }));
  const keyOf = (name: string) => loadOrCreateKeyFile(join(dir, name, 'key'));
  const addresses = [createSigner(await keyOf('s0')).address, createSigner(await keyOf('s1')).address];
  const { url: coreUrl } = stack.use(await startCore(dir, { SKERRY_CORE_SCHEDULERS: addresses.join(',') }));
  const nodes = [stack.use(await announceNode(coreUrl)), stack.use(await announceNode(coreUrl))];
  const ports = await findFreePorts(2);
  const urls = ports.map((port) => `http://127.0.0.1:${port}`);
  const schedulers = await Promise.all(
    ports.map((port, index) =>
      startDaemon('scheduler', {
        SKERRY_SCHEDULER_DATA_DIR: join(dir, `s${index}`),
        SKERRY_SCHEDULER_HOST: '127.0.0.1',
        SKERRY_SCHEDULER_PORT: String(port),
        SKERRY_SCHEDULER_CORE_URL: coreUrl,
        SKERRY_SCHEDULER_NODES: nodes.map(({ address }) => address).join(','),
        SKERRY_SCHEDULER_PEERS: urls.join(','),
        SKERRY_SCHEDULER_TAKEOVER_SECONDS: '2',
        SKERRY_SCHEDULER_PROBE_INTERVAL_SECONDS: '1',
      }).then((started) => stack.use(started)),
    ),
  );
  const findLeader = async () => {
    let roles: string[] = [];
    await until('one leads', TIMEOUT_MS, async () => {
      roles = (await Promise.all(urls.map(statusOf))).map(({ leadership }) => leadership.role);
      return roles.filter((role) => role === 'leader').length === 1;
    });
    return roles.indexOf('leader');
  };
  const url = urls[await findLeader()]!;
  await until('both nodes are in reach', TIMEOUT_MS, async () => (await statusOf(url)).nodes.healthy === 2);

  const owner = new CoreClient({ url: coreUrl, signer: createSigner(generatePrivateKey()) });
  const create = (name: string) =>
    owner.createInstance({
      ...{ name, description: '', cpu: 1, memory: 512, disk: 4, image: 'debian:12' },
      ...{ ssh_key: SSH_KEY, firewall: { allowedPorts: [22] } },
    });
  const placed = new Map<string, InstanceView>();
  const untilPlaced = async (
    id: string,
    isDone: (one: InstanceView) => boolean = ({ node_id }) => node_id !== null,
  ) =>
    until(`${id} is placed`, TIMEOUT_MS, async () => {
      const instance = await owner.getInstance(id);
      if (isDone(instance)) placed.set(id, instance);
      return isDone(instance);
    });
  for (const name of ['a', 'b', 'c', 'd']) await untilPlaced((await create(name)).instance_id);
  const before = new Map([...placed].map(([id, { node_id }]) => [id, node_id]));
  assert.equal(new Set(before.values()).size, 2, 'the instances are spread over both nodes');

  // On a busy machine the one may have taken the other's place meanwhile.
  const leader = await findLeader();
  const standby = 1 - leader;
  process.kill(schedulers[leader]!.pid, 'SIGKILL');
  await until(
    'the other leads',
    TIMEOUT_MS,
    async () => (await statusOf(urls[standby]!)).leadership.role === 'leader',
  );
  const next = (await create('e')).instance_id;
  await untilPlaced(next);
  for (const [id, nodeId] of before) assert.equal((await owner.getInstance(id)).node_id, nodeId);
  const asked = { params: { vm_hash: next } };
  const explained = await call(urls[standby]!, SCHEDULER_API.explainPlacement, asked);
  assert.deepEqual(
    [explained.verdict.code, explained.decisions.map(({ kind }) => kind)],
    ['STAYS', ['placed']],
  );

  // A node that wants to be empty: all that it holds goes to the other one.
  const [draining, other] = nodes as [(typeof nodes)[0], (typeof nodes)[0]];
  await draining.announce(coreUrl, { reason: { code: 'NODE_DRAINING', message: 'new disks' } });
  for (const id of [...before.keys(), next]) await untilPlaced(id, ({ node_id }) => node_id === other.nodeId);
});
