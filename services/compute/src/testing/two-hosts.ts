// Two compute nodes on hosts of their own, a gateway, and an instance that lives through every loss. Run by hosts.soak.test.ts.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bareEnvironment } from '@skerry/kit/testing/environment';
import { awaitReady, endProcess } from '@skerry/kit/testing/processes';
import { hostnameOf } from '@skerry/protocol';
import { run } from '../host/run.ts';
import { ComputeHost, WORLD4 } from './compute-host.ts';
import { RealCore } from './real-core.ts';
import { isPhase, READY_MS, SOON_MS, STOP_MS, sshWith, step } from './vm-world.ts';
import { until } from './wait.ts';

const SKERRY = fileURLToPath(new URL('../../../../apps/cli/bin/skerry.js', import.meta.url));
const [cacheDir = ''] = process.argv.slice(2);
const GATEWAY_PORT = 8080;
const PAGE_UNIT = `[Service]
WorkingDirectory=/srv
ExecStart=/usr/bin/python3 -m http.server --bind :: 80
[Install]
WantedBy=multi-user.target
`;

async function makeWire(): Promise<void> {
  await run('ip', ['link', 'set', 'lo', 'up']);
  await run('ip', ['link', 'add', 'wire', 'type', 'bridge']);
  await run('ip', ['addr', 'add', `${WORLD4}/24`, 'dev', 'wire']);
  await run('ip', ['-6', 'addr', 'add', '2001:db8:5:ff::fe/64', 'dev', 'wire', 'nodad']);
  await run('ip', ['link', 'set', 'wire', 'up']);
  await run('sysctl', ['-qw', 'net.ipv6.conf.all.forwarding=1', 'net.ipv4.ip_forward=1']);
}

async function startGateway(coreUrl: string, home: string) {
  const gateway = spawn(process.execPath, [SKERRY, 'gateway'], {
    env: {
      ...bareEnvironment(),
      SKERRY_HOME: home,
      SKERRY_GATEWAY_CORE_URL: coreUrl,
      SKERRY_GATEWAY_HOST: '127.0.0.1',
      SKERRY_GATEWAY_HTTP_PORT: `${GATEWAY_PORT}`,
      SKERRY_GATEWAY_HTTPS_PORT: '8443',
      SKERRY_GATEWAY_API_PORT: '8081',
      // The wire has addresses of the range for documentation, which no gateway routes to unless it is told.
      SKERRY_GATEWAY_ALLOW_PRIVATE: 'yes',
      SKERRY_LOG_LEVEL: 'error',
    },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  await awaitReady(gateway, 'the gateway');
  return gateway;
}

async function scenario(core: RealCore, directory: string): Promise<void> {
  const key = join(directory, 'id');
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]);
  const sshKey = (await readFile(`${key}.pub`, 'utf8')).trim();
  const hosts = [1, 2].map(
    (number) =>
      new ComputeHost({ number, coreUrl: core.url, dataDir: join(directory, `data-${number}`), cacheDir }),
  );
  const [one, other] = [hosts[0]!, hosts[1]!];
  try {
    await Promise.all(hosts.map((host) => host.boot()));
    await until('both nodes are announced', SOON_MS, async () => (await core.listNodes()).length === 2);
    const nodes = await core.listNodes();
    const nodeOf = (host: ComputeHost) => nodes.find(({ content }) => content.ipv6_prefix === host.prefix)!;

    let sinceMs = Date.now();
    const passed = (what: string) => {
      step(`${what} in ${Date.now() - sinceMs} ms`);
      sinceMs = Date.now();
    };
    const view = await core.create({
      sshKey,
      allowedPorts: [22, 80],
      node: nodeOf(one),
      ipv6Prefix: one.prefix,
    });
    const { instance_id: id, ipv6 } = view;
    const neighbour = await core.create({
      sshKey,
      allowedPorts: [22],
      node: nodeOf(other),
      ipv6Prefix: other.prefix,
    });
    await core.until(id, isPhase('running'), READY_MS);
    await core.until(neighbour.instance_id, isPhase('running'), READY_MS);
    passed('created -> running, two on two hosts');
    const ssh = (command: string) => sshWith(key, ipv6, command);
    await ssh(
      `echo kept > /srv/index.html; cat > /etc/systemd/system/page.service <<'E'\n${PAGE_UNIT}E\nsystemctl enable -q --now page; sync`,
    );

    const listExecutions = async (host: ComputeHost) =>
      (await (await fetch(`http://${host.ipv4}:4020/v2/about/executions/list`)).json()) as Record<
        string,
        { networking: { ipv6_ip: string; mapped_ports: Record<string, { host: number }> } }
      >;
    const { networking } = (await listExecutions(one))[id]!;
    assert.deepEqual(Object.keys(await listExecutions(other)), [neighbour.instance_id]);
    const sshPort = networking.mapped_ports[22]!.host;
    const hostname = `${hostnameOf(id)}.skerry.localhost`;
    const page = async () =>
      (
        await run('curl', [
          '-s',
          '-m',
          '5',
          '-H',
          `Host: ${hostname}`,
          `http://127.0.0.1:${GATEWAY_PORT}/`,
        ]).catch(() => '')
      ).trim();

    /** All that must be as it was. */
    const checkAll = async (what: string) => {
      await until(
        `${what}: the page answers under its name`,
        READY_MS,
        async () => (await page()) === 'kept',
      );
      assert.equal((await ssh('cat /srv/index.html')).trim(), 'kept');
      assert.equal((await sshWith(key, one.ipv4, 'hostname', sshPort)).trim(), hostnameOf(id));
      const now = (await listExecutions(one))[id]!.networking;
      assert.deepEqual(now, networking, 'the same address and the same ports');
      assert.equal((await core.get(id)).ipv6, ipv6);
      passed(what);
    };
    const gateway = await startGateway(core.url, join(directory, 'gateway'));
    try {
      await checkAll('file, ssh by IPv6 and by IPv4, page through the gateway');

      await one.killNode();
      assert.equal(await page(), 'kept', 'the machine goes on without its node');
      await one.startNode();
      await checkAll('restart of the node process');

      const pid = Number(await readFile(join(directory, 'data-1', 'instances', id, 'qemu.pid'), 'utf8'));
      process.kill(pid, 'SIGKILL');
      await core.until(id, (now) => now.phase !== 'running', SOON_MS);
      await core.until(id, isPhase('running'), READY_MS);
      await checkAll('QEMU killed');

      await one.lose();
      await one.boot();
      await core.until(id, isPhase('running'), READY_MS);
      await checkAll('the host lost its power and booted');
      const stillThere = sshWith(key, neighbour.ipv6, 'uptime -s');
      assert.match(await stillThere, /^20/, 'the neighbour on the other host');

      step('two allocations close together are one machine; back again, it finds its disk');
      await core.allocate(id, nodeOf(other), other.prefix);
      await core.allocate(id, nodeOf(one), one.prefix);
      await until('it settles', STOP_MS + READY_MS, async () => {
        const now = await core.get(id);
        return now.phase === 'running' && now.node_id === nodeOf(one).nodeId && (await page()) === 'kept';
      });
      await until('the other host has let go', STOP_MS, async () => !(await listExecutions(other))[id]);
      await checkAll('there and back again');
    } finally {
      await endProcess(gateway, 'SIGTERM');
    }
  } finally {
    await Promise.all(hosts.map((host) => host.lose()));
  }
}

const directory = await mkdtemp(join(tmpdir(), 'skerry-hosts-'));
try {
  await makeWire();
  await using core = await new RealCore().start(WORLD4);
  await scenario(core, directory);
  step('done');
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await rm(directory, { recursive: true, force: true, maxRetries: 10 });
}
