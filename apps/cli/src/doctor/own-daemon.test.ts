import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createSigner, generatePrivateKey } from '@skerry/client';
import { takeDataDir } from '@skerry/kit';
import { loadOrCreateKeyFile } from '@skerry/kit/files';
import { serving } from '@skerry/kit/testing/serving';
import type { Role } from '../joining/roles.ts';
import { startNamesake } from '../testing/namesake.ts';
import { createTestDir } from '../testing/run.ts';
import type { PortFacts } from './facts.ts';
import { findDaemon } from './own-daemon.ts';

const takenAt = (url: string): PortFacts => {
  const { hostname: host, port } = new URL(url);
  return { variable: 'SKERRY_CORE_PORT', host, port: Number(port), describe: 'API', state: 'taken' };
};
const find = (dataDir: string, urls: readonly string[], role: Role = 'core') =>
  findDaemon({ role, dataDir }, urls.map(takenAt));
const NOBODY = { isThere: false, another: undefined };
const OWN = { isThere: true, another: undefined };

test('a daemon on the port is the one of these settings only where it has their data directory', async () => {
  await using home = await createTestDir();
  const [own, other] = [join(home.path, 'own'), join(home.path, 'other')];
  await mkdir(own);
  await mkdir(other);
  await using daemon = await serving((_, response) => response.setHeader('server', 'skerry/0.1.0').end());
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
