import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createSigner, generatePrivateKey } from '@skerry/client';
import { findFreePort } from '@skerry/kit';
import { skerryHere } from '../testing/here.ts';
import { startNamesake } from '../testing/namesake.ts';
import { createTestDir } from '../testing/run.ts';

/** What a gateway that joins would be set to, in a home of its own. */
async function planned(environment: Readonly<Record<string, string>>, inFile = '') {
  await using home = await createTestDir();
  await using core = await startNamesake(createSigner(generatePrivateKey()).address);
  const file = join(home.path, 'gateway.env');
  if (inFile !== '') await writeFile(file, inFile);
  const { out, err } = await skerryHere({ SKERRY_HOME: home.path, ...environment }, [
    'join',
    core.url,
    '--role',
    'gateway',
    '--domain',
    'a.localhost',
    '--settings',
    file,
    '--dry-run',
    '--force',
    '--json',
  ]);
  const plan = out === '' ? undefined : (JSON.parse(out) as { settings: Record<string, string> });
  return { settings: plan?.settings, url: core.url, out, err };
}

test('what the environment alone says of the daemon is written, so that its unit starts as it was looked at', async () => {
  const port = String(await findFreePort());
  const doors = { SKERRY_GATEWAY_HTTP_PORT: port, SKERRY_GATEWAY_HOST: '127.0.0.1' };
  const { settings, url, err } = await planned({ ...doors, SKERRY_COMPUTE_PORT: '1', SKERRY_KEY: 'mine' });
  assert.deepEqual(
    settings,
    { ...doors, SKERRY_GATEWAY_CORE_URL: url, SKERRY_GATEWAY_DOMAIN: 'a.localhost' },
    err,
  );
});

test('what the file says so already is left as it is', async () => {
  const { settings } = await planned(
    { SKERRY_GATEWAY_DRAIN_MS: '5', SKERRY_GATEWAY_HOST: '::1' },
    'SKERRY_GATEWAY_DRAIN_MS="5"\nSKERRY_GATEWAY_HOST=::\n',
  );
  assert.equal(settings?.SKERRY_GATEWAY_DRAIN_MS, undefined);
  assert.equal(settings?.SKERRY_GATEWAY_HOST, '::1');
});

test('a secret of the environment is written and not told, also where no file takes it', async () => {
  const { settings, out } = await planned({ SKERRY_GATEWAY_API_KEYS: 'correct-horse' });
  assert.equal(settings?.SKERRY_GATEWAY_API_KEYS, '(hidden)');
  assert.doesNotMatch(out, /correct-horse/);
  const refused = await planned({ SKERRY_GATEWAY_API_KEYS: 'correct horse' });
  assert.equal(refused.out, '');
  assert.match(refused.err, /SKERRY_GATEWAY_API_KEYS.*INVALID_PARAMETERS/s);
  assert.doesNotMatch(refused.err, /correct horse/);
});
