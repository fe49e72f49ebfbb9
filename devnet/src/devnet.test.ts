import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createSigner } from '@skerry/client';
import { type DevnetOptions, startDevnet } from './devnet.ts';
import { ANY_PORTS, createTestDir, isAlive, QUICK_LIMITS, TEST_DAEMON, until } from './testing/network.ts';
import { startOutside } from './testing/outside.ts';

type Settings = Record<string, string>;

const options = (dataDir: string, behaviour: Record<string, string> = {}): DevnetOptions => ({
  command: [process.execPath, TEST_DAEMON],
  environment: { TEST_BEHAVIOUR: JSON.stringify(behaviour) },
  dataDir,
  ports: ANY_PORTS,
  limits: QUICK_LIMITS,
});

const settingsAt = async (url: string) => (await (await fetch(url)).json()) as Settings;

test('starts the core node first, joins the others to it, and stops all in reverse', async () => {
  await using dir = await createTestDir();
  const lines: string[] = [];
  const devnet = await startDevnet({
    ...options(dir.path),
    onLine: (name, line) => lines.push(`${name} ${(JSON.parse(line) as { msg: string }).msg}`),
  });
  const { urls, processes } = devnet;
  assert.deepEqual(Object.keys(urls).sort(), Object.keys(ANY_PORTS).sort());
  const core = await settingsAt(urls.core!);
  const keyFile = join(dir.path, 'scheduler', 'key');
  assert.equal(core.SKERRY_CORE_SCHEDULERS, createSigner(readFileSync(keyFile, 'utf8')).address);
  assert.equal((await stat(keyFile)).mode & 0o777, 0o600);
  const creditKey = readFileSync(join(dir.path, 'credit', 'key'), 'utf8');
  assert.equal(core.SKERRY_CORE_CREDIT_PUBLISHERS, createSigner(creditKey).address);
  for (const [name, url] of Object.entries({
    scheduler: urls.scheduler,
    compute: urls.compute,
    gateway: urls.gatewayApi,
    credit: urls.credit,
    status: urls.status,
  })) {
    const settings = await settingsAt(url!);
    assert.equal(settings[`SKERRY_${name.toUpperCase()}_CORE_URL`], urls.core);
    assert.equal(settings[`SKERRY_${name.toUpperCase()}_DATA_DIR`], join(dir.path, name));
  }
  const pids = [...processes.values()].map(({ pid }) => pid!);
  await devnet[Symbol.asyncDispose]();
  assert.ok(pids.every((pid) => !isAlive(pid)));
  await until('all last words', () => lines.filter((line) => line.includes('stops')).length === 7);
  assert.equal(
    lines.find((line) => line.includes('serves')),
    'core serves',
  );
  assert.equal(
    lines.findLast((line) => line.includes('stops')),
    'core stops: SIGTERM',
  );
  assert.match(readFileSync(join(dir.path, 'logs', 'core.log'), 'utf8'), /"msg":"serves"/);
  // Everything that it signed is still there.
  await rm(keyFile);
  await assert.rejects(startDevnet(options(dir.path)), {
    code: 'INVALID_CONFIG',
    message: /scheduler\/key is missing.*skerry restore/,
  });
  await assert.rejects(stat(keyFile), { code: 'ENOENT' });
});

test('several core nodes know each other, and have each a directory of their own', async () => {
  await using dir = await createTestDir();
  await using devnet = await startDevnet({ ...options(dir.path), cores: 3 });
  assert.equal(devnet.coreUrls.length, 3);
  assert.equal(devnet.urls.core, devnet.coreUrls[0]);
  const portOf = (url: string) => new URL(url).port;
  for (const url of devnet.coreUrls) {
    const settings = await settingsAt(url);
    const peers = settings.SKERRY_CORE_PEERS!.split(',').map(portOf);
    assert.equal(settings.SKERRY_CORE_PORT, portOf(url));
    assert.deepEqual([...peers, portOf(url)].sort(), devnet.coreUrls.map(portOf).sort());
  }
  const dirs = await Promise.all(
    devnet.coreUrls.map(async (url) => (await settingsAt(url)).SKERRY_CORE_DATA_DIR),
  );
  assert.equal(new Set(dirs).size, 3);
});

test('a daemon that was killed comes back at the same place', async () => {
  await using dir = await createTestDir();
  let ready = 0;
  await using devnet = await startDevnet({
    ...options(dir.path),
    onEvent: (name, event) => {
      if (name === 'gateway' && event.kind === 'ready') ready++;
    },
  });
  const before = devnet.urls;
  process.kill(devnet.processes.get('gateway')!.pid!, 'SIGKILL');
  await until('the gateway again', () => ready === 2);
  assert.deepEqual(devnet.urls, before);
  assert.ok((await settingsAt(before.gatewayHttps!)).SKERRY_GATEWAY_DATA_DIR);
  const log = readFileSync(join(dir.path, 'logs', 'skerry.log'), 'utf8')
    .trimEnd()
    .split('\n');
  const told = log.map((line) => JSON.parse(line) as { level: number; time: number; msg: string });
  const ended = told.find(({ level }) => level === 40);
  assert.match(ended!.msg, /^gateway exited \(SIGKILL\); restarting it in /);
  assert.ok(Math.abs(Date.now() - ended!.time) < 3_600_000);
});

test('what cannot be started is left out and said; without a core node there is nothing', async () => {
  await using dir = await createTestDir();
  {
    await using devnet = await startDevnet(options(dir.path, { compute: 'crash' }));
    assert.equal(devnet.urls.compute, undefined);
    assert.ok(devnet.urls.gatewayApi);
    assert.equal(devnet.failures.get('compute')?.code, 'DAEMON_FAILED');
  }
  await assert.rejects(startDevnet(options(dir.path, { core: 'crash' })), { code: 'DAEMON_FAILED' });
  // Nothing is held by the one that failed.
  await using devnet = await startDevnet(options(dir.path));
  assert.equal(devnet.failures.size, 0);
});

test('a second devnet in the same directory is refused and disturbs nothing', async () => {
  await using dir = await createTestDir();
  await using devnet = await startDevnet(options(dir.path));
  await assert.rejects(startDevnet(options(dir.path)), (error: Error) =>
    error.message.startsWith(`another devnet (process ${process.pid}) uses ${dir.path}`),
  );
  assert.ok(await settingsAt(devnet.urls.core!));
});

test('giving up while it starts stops what was started', async () => {
  await using dir = await createTestDir();
  const stop = new AbortController();
  const starting = startDevnet({
    ...options(dir.path),
    signal: stop.signal,
    onEvent: (name) => {
      if (name === 'core') stop.abort();
    },
  });
  await assert.rejects(starting, { code: 'SHUTTING_DOWN' });
  await using _again = await startDevnet(options(dir.path));
});

test('after a kill -9 of the devnet its daemons go too, and the next one waits for them', async () => {
  await using dir = await createTestDir();
  const { parent, pids } = await startOutside(dir.path);
  assert.equal(pids.length, 7);
  parent.kill('SIGKILL');
  await once(parent, 'exit');
  await using devnet = await startDevnet(options(dir.path));
  assert.ok(pids.every((pid) => !isAlive(pid)));
  assert.equal(devnet.failures.size, 0);
});
