import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { RealCore } from './testing/real-core.ts';
import { until } from './testing/wait.ts';

const SOON_MS = 60_000;
const NOBODY = 65_534;

/** Starts the service as an ordinary user: directly, or from root by becoming nobody. */
function startAsOrdinaryUser(environment: Record<string, string>): ChildProcess {
  const isRoot = process.geteuid?.() === 0;
  return spawn(process.execPath, [join(import.meta.dirname, 'testing/main.ts')], {
    env: { PATH: process.env.PATH, ...environment },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    ...(isRoot ? { uid: NOBODY, gid: NOBODY } : {}),
  });
}

test('where virtual machines cannot run the node still serves, says why, and refuses what it is given', {
  timeout: 2 * SOON_MS,
}, async () => {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-compute-'));
  await chmod(directory, 0o777);
  await using core = await new RealCore().start();
  const node = startAsOrdinaryUser({
    SKERRY_COMPUTE_CORE_URL: core.url,
    SKERRY_COMPUTE_DATA_DIR: join(directory, 'data'),
    SKERRY_COMPUTE_CACHE_DIR: join(directory, 'cache'),
    SKERRY_COMPUTE_PORT: '0',
    SKERRY_LOG_LEVEL: 'error',
  });
  try {
    const [{ urls }] = (await once(node, 'message')) as [{ urls: string[] }];
    const url = urls[0]!;

    const login = await fetch(`${url}/about/login`);
    assert.equal(login.status, 401);
    assert.deepEqual(await login.json(), { success: false });
    assert.match(login.headers.get('server') ?? '', /^skerry\//);

    await until('the node is announced', SOON_MS, async () => (await core.listNodes()).length === 1);
    const [announced] = await core.listNodes();
    const { nodeId, content } = announced!;
    assert.deepEqual(content.capacity, { cpu: 0, memory_mib: 0, disk_gib: 0 });
    assert.equal(content.reason?.code, 'HOST_NOT_READY');
    assert.match(content.reason?.message ?? '', /root/);

    const config = (await (await fetch(`${url}/status/config`)).json()) as {
      node_hash: string;
      computing: Record<string, unknown>;
      reason: { code: string };
    };
    assert.equal(config.node_hash, nodeId);
    assert.equal(config.computing.ENABLE_QEMU_SUPPORT, false);
    assert.equal(config.reason.code, 'HOST_NOT_READY');

    const usage = (await (await fetch(`${url}/about/usage/system`)).json()) as Record<
      string,
      Record<string, number>
    >;
    assert.ok(
      usage.cpu!.count! >= 1 && usage.mem!.total_kB! > usage.mem!.available_kB! && usage.disk!.total_kB! > 0,
    );
    assert.deepEqual(await (await fetch(`${url}/v2/about/executions/list`)).json(), {});
    assert.deepEqual(await (await fetch(`${url}/about/executions/list`)).json(), {});
    const missing = await fetch(`${url}/about/nothing`);
    assert.equal(missing.status, 404);
    assert.equal(((await missing.json()) as { code: string }).code, 'ROUTE_NOT_FOUND');

    const { instance_id: id } = await core.create({
      sshKey: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Fh0uVwOqkFZkP3kCq5p8v0wYVqX5b0pD8kT3C1xYz',
      allowedPorts: [22],
      node: announced!,
      ipv6Prefix: content.ipv6_prefix,
    });
    const view = await core.until(id, ({ phase }) => phase === 'failed', SOON_MS);
    assert.equal(view.reason?.code, 'HOST_NOT_READY');
  } finally {
    node.kill('SIGTERM');
    if (node.exitCode === null && node.signalCode === null) await once(node, 'exit');
    await rm(directory, { recursive: true, force: true });
  }
});
