import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { takeDataDir } from '@skerry/kit';
import { startGatewayNamesake } from '../testing/namesake.ts';
import { createTestDir } from '../testing/run.ts';
import { look } from './counted.ts';
import { readRole } from './roles.ts';

test('a node that joins is not counted by the word of another one that has its port', async () => {
  await using home = await createTestDir();
  const dataDir = join(home.path, 'gateway');
  await using twin = await startGatewayNamesake('f0'.repeat(16));
  const { port, hostname } = new URL(twin.url);
  const settings = await readRole('gateway', {
    SKERRY_HOME: home.path,
    SKERRY_GATEWAY_DATA_DIR: dataDir,
    SKERRY_GATEWAY_API_PORT: port,
    SKERRY_GATEWAY_API_HOST: hostname,
    // Nothing that a test starts listens there.
    ...{ SKERRY_GATEWAY_HTTP_PORT: '1', SKERRY_GATEWAY_HTTPS_PORT: '2' },
  });
  const lookNow = () => look({ settings, coreUrl: 'http://127.0.0.1:1', schedulerUrl: undefined });
  assert.deepEqual(await lookNow(), {
    state: 'waiting',
    text: `no gateway daemon works in ${dataDir} yet`,
  });
  await mkdir(dataDir);
  using _serving = await takeDataDir(dataDir);
  await writeFile(join(dataDir, 'id'), '0f'.repeat(16));
  assert.deepEqual(await lookNow(), {
    state: 'waiting',
    text: `what answers at ${twin.url} is another daemon`,
  });
});
