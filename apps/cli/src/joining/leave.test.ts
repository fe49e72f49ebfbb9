import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createSigner, generatePrivateKey } from '@skerry/client';
import { takeDataDir } from '@skerry/kit';
import { loadOrCreateKeyFile } from '@skerry/kit/files';
import { EXIT } from '../exit-codes.ts';
import { devnetIn, noteLocal } from '../networks/local.ts';
import { skerryHere } from '../testing/here.ts';
import { startNamesake } from '../testing/namesake.ts';
import { createTestDir } from '../testing/run.ts';

test('where no node is, none is said to have left', async () => {
  await using home = await createTestDir();
  for (const role of ['compute', 'gateway', 'core', 'monitor']) {
    const environment = {
      SKERRY_HOME: home.path,
      // Nothing that a test starts listens there.
      ...{ SKERRY_COMPUTE_PORT: '1', SKERRY_CORE_PORT: '1' },
      ...{ SKERRY_GATEWAY_HTTP_PORT: '1', SKERRY_GATEWAY_HTTPS_PORT: '2', SKERRY_GATEWAY_API_PORT: '3' },
    };
    const { code, out, err } = await skerryHere(environment, ['leave', '--role', role, '--yes']);
    assert.deepEqual([code, out], [EXIT.notFound, ''], role);
    assert.match(err, new RegExp(`no ${role} node is on this server.*NODE_NOT_FOUND`, 's'));
    assert.match(err, /--settings FILE/);
  }
});

test('the network of "skerry up" is ended, and no node leaves it', async () => {
  await using home = await createTestDir();
  const data = join(home.path, 'data');
  for (const dataDir of [devnetIn(data), join(home.path, 'elsewhere')]) {
    await mkdir(join(dataDir, 'compute'), { recursive: true });
    await using _network = await noteLocal(data, 'http://127.0.0.1:4024', { dataDir, urls: {} });
    using _working = await takeDataDir(join(dataDir, 'compute'));
    for (const role of [[], ['--role', 'compute']]) {
      const environment = { SKERRY_HOME: home.path, SKERRY_COMPUTE_PORT: '1' };
      const { code, out, err } = await skerryHere(environment, ['leave', ...role, '--yes', '--json']);
      assert.deepEqual([code, out], [EXIT.notFound, ''], err);
      const { hint } = JSON.parse(err) as { hint: string };
      assert.equal(hint, `"skerry down" ends that network; its data stay in ${dataDir}`);
    }
  }
});

test('a node that somebody names leaves, also while "skerry up" runs', async () => {
  await using home = await createTestDir();
  const data = join(home.path, 'data');
  const own = join(home.path, 'mine');
  const network = devnetIn(data);
  await mkdir(join(network, 'compute'), { recursive: true });
  await mkdir(own);
  const file = join(home.path, 'mine.env');
  await writeFile(file, `SKERRY_COMPUTE_DATA_DIR=${own}\n`);
  await using _network = await noteLocal(data, 'http://127.0.0.1:4024', { dataDir: network, urls: {} });
  using _working = await takeDataDir(join(network, 'compute'));
  const usual = { SKERRY_HOME: home.path, SKERRY_COMPUTE_PORT: '1' };
  const leave = (more: object, ...args: string[]) =>
    skerryHere({ ...usual, ...more }, ['leave', '--dry-run', '--json', ...args]);
  for (const { code, out, err } of [
    await leave({}, '--settings', file),
    await leave({ SKERRY_COMPUTE_DATA_DIR: own }),
  ]) {
    assert.equal(code, EXIT.ok, err);
    assert.ok((JSON.parse(out) as { remains: string[] }).remains.includes(own), out);
  }
  const monitor = await leave({ SKERRY_MONITOR_DATA_DIR: own });
  assert.equal((JSON.parse(monitor.out) as { role: string }).role, 'monitor', monitor.err);
  for (const mistyped of [
    await leave({ SKERRY_COMPUTE_DATA_DIR: `${own}2` }),
    await leave({}, '--role', 'monitor', '--settings', `${file}2`),
  ]) {
    assert.equal(mistyped.code, EXIT.notFound, mistyped.err);
    assert.match((JSON.parse(mistyped.err) as { error: string }).error, /^no (compute|monitor) node is on/);
  }
});

/** A home in which a role has a data directory, and a way to leave. */
async function createHome(role: string) {
  const home = await createTestDir();
  const dataDir = join(home.path, 'data', role);
  await mkdir(dataDir, { recursive: true });
  // Nothing that a test starts listens there.
  const environment = { SKERRY_HOME: home.path, SKERRY_CORE_PORT: '1' };
  const leaveBy = (more: object, ...args: string[]) =>
    skerryHere({ ...environment, ...more }, ['leave', '--role', role, '--json', ...args]);
  const leave = (...args: string[]) => leaveBy({}, ...args);
  return { leave, leaveBy, dataDir, [Symbol.asyncDispose]: () => home[Symbol.asyncDispose]() };
}

test('a monitor has left when its process has ended, and not before', async () => {
  await using home = await createHome('monitor');
  {
    using _working = await takeDataDir(home.dataDir);
    const { code, out, err } = await home.leave('--yes', '--timeout', '1s');
    assert.deepEqual([code, out], [EXIT.unavailable, '']);
    const [demand, failure] = err
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.deepEqual(demand, { demand: 'Now end it, with Ctrl-C where it runs', command: 'skerry monitor' });
    assert.equal(failure.code, 'TIMED_OUT');
    assert.deepEqual(failure.details.running, { role: 'monitor', data_dir: home.dataDir });
  }
  const { code, out } = await home.leave('--yes');
  assert.equal(code, EXIT.ok);
  assert.equal(JSON.parse(out).running, false);
});

test('what is left on disk is told with a command that removes that alone', async () => {
  await using home = await createTestDir();
  const dataDir = join(home.path, 'my node');
  await mkdir(dataDir);
  const environment = { SKERRY_HOME: home.path, SKERRY_MONITOR_DATA_DIR: dataDir };
  const { out, err } = await skerryHere(environment, ['leave', '--role', 'monitor', '--yes']);
  assert.ok(out.endsWith(`\nStill on disk: ${dataDir} (rm -r '${dataDir}')\n`), `${out}${err}`);
});

test('whoever is told to look first can: nothing is changed, and what would be refused is said', async () => {
  await using monitor = await createHome('monitor');
  using _measuring = await takeDataDir(monitor.dataDir);
  const asked = JSON.parse((await monitor.leave()).err);
  assert.equal(asked.code, 'CONFIRMATION_REQUIRED');
  assert.match(asked.hint, /--dry-run/);
  const { code, out, err } = await monitor.leave('--dry-run');
  assert.deepEqual([code, err], [EXIT.ok, '']);
  const plan = JSON.parse(out);
  assert.deepEqual([plan.presence, plan.refused], ['works', null]);
  assert.deepEqual(plan.steps, ['ask you to end "skerry monitor", and wait until it has ended']);
  assert.deepEqual(plan.remains, [monitor.dataDir]);

  await using core = await createHome('core');
  using _serving = await takeDataDir(core.dataDir);
  const looked = await core.leave('--dry-run');
  assert.equal(looked.code, EXIT.failed);
  const { refused } = JSON.parse(looked.out);
  assert.equal(refused.code, 'CONFIRMATION_REQUIRED');
  assert.match(refused.error, /a core node works in .* and does not answer/);
  const done = await core.leave('--yes', '--timeout', '1s');
  assert.deepEqual([done.code, JSON.parse(done.err).error], [EXIT.failed, refused.error]);
});

test('whether a node may leave is not decided by the word of another one that has its usual port', async () => {
  await using home = await createHome('core');
  using _serving = await takeDataDir(home.dataDir);
  const { address } = createSigner(await loadOrCreateKeyFile(join(home.dataDir, 'node.key')));
  const stranger = createSigner(generatePrivateKey()).address;
  const leaveAt = async (named: string) => {
    await using node = await startNamesake(named);
    const { port, hostname } = new URL(node.url);
    const at = { SKERRY_CORE_PORT: port, SKERRY_CORE_HOST: hostname };
    const { code, out, err } = await home.leaveBy(at, '--dry-run');
    assert.equal(err, '');
    return { ...node, code, plan: JSON.parse(out) };
  };
  const own = await leaveAt(address);
  assert.deepEqual([own.code, own.plan.presence, own.plan.refused], [EXIT.ok, 'answers', null]);
  const other = await leaveAt(stranger);
  assert.deepEqual([other.code, other.plan.presence], [EXIT.failed, 'works']);
  const { code, error, hint } = other.plan.refused;
  assert.deepEqual(
    [code, error],
    [
      'CONFIRMATION_REQUIRED',
      `a core node works in ${home.dataDir}, and what answers at ${other.url} is another daemon, so it cannot be emptied`,
    ],
  );
  assert.match(hint, /started with another port.*SKERRY_CORE_PORT in .*core\.env, or before the command/);
});
