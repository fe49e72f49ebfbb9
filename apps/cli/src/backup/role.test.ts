import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { skerryPaths } from '@skerry/kit';
import { describeNode, findNode } from './role.ts';

test('the only node with data is meant, unless the settings of another one cannot be read: these are named', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-role-'));
  t.after(() => rm(home, { recursive: true }));
  const environment = { SKERRY_HOME: home };
  const machine = { environment, paths: skerryPaths(environment) };
  await mkdir(join(home, 'data', 'scheduler'), { recursive: true });
  await writeFile(join(home, 'data', 'scheduler', 'key'), '');
  assert.equal((await findNode(machine, {})).role, 'scheduler');

  await mkdir(machine.paths.config, { recursive: true });
  await writeFile(join(machine.paths.config, 'core.env'), 'SKERRY_CORE_PORT=many\n');
  await assert.rejects(findNode(machine, {}), {
    code: 'INVALID_CONFIG',
    message: /choose with --role.*core: .*SKERRY_CORE_PORT/,
  });
  assert.equal((await findNode(machine, { role: 'scheduler' })).role, 'scheduler');
});

test('what a daemon left that could not start is not taken for the network of "skerry up"', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-role-'));
  t.after(() => rm(home, { recursive: true }));
  const environment = { SKERRY_HOME: home };
  const machine = { environment, paths: skerryPaths(environment) };
  const core = join(machine.paths.data, 'devnet', 'core');
  await mkdir(core, { recursive: true });
  await writeFile(join(core, 'key'), '');
  const named = new RegExp(`--role core --data-dir ${core} for the core node of "skerry up"$`);
  await assert.rejects(findNode(machine, {}), { code: 'INVALID_PARAMETERS', message: named });
  await mkdir(join(machine.paths.data, 'credit'));
  await writeFile(join(machine.paths.data, 'credit', 'key'), '');
  await assert.rejects(findNode(machine, {}), {
    message: /several nodes: choose with --role credit, or --role core --data-dir /,
  });
  assert.equal((await findNode(machine, { role: 'credit' })).role, 'credit');
});

test('what a unit sets holds where neither the settings file nor the environment says it', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-role-'));
  t.after(() => rm(home, { recursive: true }));
  const environment = { SKERRY_HOME: home, SKERRY_GATEWAY_API_PORT: '5003' };
  const machine = { environment, paths: skerryPaths(environment) };
  await mkdir(machine.paths.config, { recursive: true });
  await writeFile(join(machine.paths.config, 'gateway.env'), 'SKERRY_GATEWAY_HTTPS_PORT=5002\n');
  const ports = ['SKERRY_GATEWAY_HTTP_PORT', 'SKERRY_GATEWAY_HTTPS_PORT', 'SKERRY_GATEWAY_API_PORT'];
  const beneath = Object.fromEntries(ports.map((variable) => [variable, '5001']));
  const { config } = await describeNode(machine, 'gateway', { beneath });
  assert.deepEqual([config.httpPort, config.httpsPort, config.apiPort], [5001, 5002, 5003]);
});
