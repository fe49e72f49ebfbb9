import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createSigner, generatePrivateKey } from '@skerry/client';
import { takeDataDir } from '@skerry/kit';
import { loadOrCreateKeyFile } from '@skerry/kit/files';
import { serving } from '@skerry/kit/testing/serving';
import type { Role } from '../joining/roles.ts';
import { startGatewayNamesake, startNamesake } from '../testing/namesake.ts';
import { createTestDir } from '../testing/run.ts';
import type { PortFacts } from './facts.ts';
import { findDaemon } from './own-daemon.ts';

const takenAt = (url: string): PortFacts => {
  const { hostname: host, port } = new URL(url);
  return { variable: 'SKERRY_CORE_PORT', host, port: Number(port), describe: 'API', state: 'taken' };
};
const find = (dataDir: string, urls: readonly string[], role: Role = 'core') =>
  findDaemon({ role, dataDir, domain: 'skerry.localhost' }, urls.map(takenAt));
const NOBODY = { isThere: false, another: undefined };
const OWN = { isThere: true, another: undefined };

test('a daemon on the port is the one of these settings only where it has their data directory', async () => {
  await using home = await createTestDir();
  const [own, other] = [join(home.path, 'own'), join(home.path, 'other')];
  await mkdir(own);
  await mkdir(other);
  await using daemon = await startGatewayNamesake(undefined);
  const at = (dataDir: string) => find(dataDir, [daemon.url], 'gateway');
  {
    using _working = await takeDataDir(own);
    assert.deepEqual(await at(own), OWN);
    assert.deepEqual(await at(other), NOBODY);
    assert.deepEqual(await at(join(home.path, 'missing')), NOBODY);
  }
  // Its file is left, and nobody works there.
  assert.deepEqual(await at(own), NOBODY);
});

test('and where it says that it has their key: a node of another network may have the port', async () => {
  await using home = await createTestDir();
  using _working = await takeDataDir(home.path);
  const { address } = createSigner(await loadOrCreateKeyFile(join(home.path, 'node.key')));
  await using own = await startNamesake(address);
  await using stranger = await startNamesake(createSigner(generatePrivateKey()).address);
  await using web = await serving((_, response) => response.end());
  assert.deepEqual(await find(home.path, [own.url]), OWN);
  assert.deepEqual(await find(home.path, [stranger.url, own.url]), OWN);
  assert.deepEqual(await find(home.path, [stranger.url]), { isThere: false, another: stranger.url });
  // One of another role says nothing of it.
  assert.deepEqual(await find(home.path, [own.url], 'compute'), { isThere: false, another: own.url });
  assert.deepEqual(await find(home.path, [web.url]), NOBODY);
});

test('a gateway is known by the id of its data directory, one of an older release by its domain', async () => {
  await using home = await createTestDir();
  using _working = await takeDataDir(home.path);
  const id = '0f'.repeat(16);
  await writeFile(join(home.path, 'id'), `${id}\n`);
  await using own = await startGatewayNamesake(id);
  await using twin = await startGatewayNamesake('f0'.repeat(16));
  await using older = await startGatewayNamesake(undefined);
  await using elsewhere = await startGatewayNamesake(undefined, 'apps.example.org');
  await using core = await startNamesake(createSigner(generatePrivateKey()).address);
  const at = (...urls: string[]) => find(home.path, urls, 'gateway');
  assert.deepEqual(await at(own.url), OWN);
  assert.deepEqual(await at(twin.url, own.url), OWN);
  assert.deepEqual(await at(older.url), OWN);
  for (const { url } of [twin, elsewhere, core])
    assert.deepEqual(await at(url), { isThere: false, another: url });
});

test('a daemon of another kind is none of these settings, also where they have no key yet', async () => {
  await using home = await createTestDir();
  using _working = await takeDataDir(home.path);
  await using core = await startNamesake(createSigner(generatePrivateKey()).address);
  await using gateway = await startGatewayNamesake('0f'.repeat(16));
  assert.deepEqual(await find(home.path, [core.url]), OWN);
  for (const role of ['core', 'compute'] as const)
    assert.deepEqual(await find(home.path, [gateway.url], role), { isThere: false, another: gateway.url });
});
