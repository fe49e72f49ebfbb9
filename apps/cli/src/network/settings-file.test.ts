import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createTestDir } from '../testing/run.ts';
import { findMistyped, readSettingsFile } from './settings-file.ts';

test('a settings file has NAME=value, comments and empty lines; what else there is, is refused by its line', async () => {
  await using home = await createTestDir();
  const path = join(home.path, 'core.env');
  const read = async (text: string) => {
    await writeFile(path, text);
    return { ...(await readSettingsFile(path)) };
  };
  assert.deepEqual(await read('# a node\n\nA=1\r\nexport B="2 # 3"\n  C = x=y # why\nD=\n'), {
    ...{ A: '1', B: '2 # 3', C: 'x=y', D: '' },
  });
  assert.deepEqual(await read('KEY="one\ntwo words"\nA=1'), { KEY: 'one\ntwo words', A: '1' });
  assert.equal(await readSettingsFile(join(home.path, 'none')), undefined);
  for (const wrong of ['SKERRY_CORE_PORT: 4024', 'hunter2', '-A=1 -B', '=1'])
    await assert.rejects(read(`A=1\n${wrong}\n`), (error: Error & { code?: string }) => {
      assert.deepEqual(
        [error.code, error.message],
        ['INVALID_CONFIG', `line 2 of ${path} is not NAME=value`],
      );
      return true;
    });
});

test('a quote that is not closed takes no other setting in, and a value of several lines hides no typing error', async () => {
  await using home = await createTestDir();
  const path = join(home.path, 'core.env');
  const read = async (text: string) => {
    await writeFile(path, text);
    return { ...(await readSettingsFile(path)) };
  };
  const failsAt = async (text: string, line: number, why: RegExp) =>
    assert.rejects(read(text), (error: Error & { code?: string }) => {
      assert.equal(error.code, 'INVALID_CONFIG');
      assert.ok(error.message.startsWith(`line ${line} of ${path}`), error.message);
      assert.match(error.message, why);
      assert.doesNotMatch(error.message, /hunter2/);
      return true;
    });
  const open = 'SKERRY_CORE_S3_SECRET_ACCESS_KEY="hunter2';
  await failsAt(`${open}\nSKERRY_CORE_PEERS=https://a.example\nSKERRY_CORE_HOST="::"\n`, 1, /not closed$/);
  await failsAt(`A=1\n${open}\nSKERRY_CORE_PORT=4024\n`, 2, /quotes of SKERRY_CORE_S3_SECRET_ACCESS_KEY/);
  await failsAt(`KEY='hunter2\nSKERRY_CORE_PORT=4024\nB='x'\n`, 2, /SKERRY_CORE_PORT stands within quotes/);
  await failsAt('KEY="one\ntwo"\nSKERRY_CORE_PORT: 4024\n', 3, /is not NAME=value$/);
  const key = '-----BEGIN KEY-----\nQUJD=\n-----END KEY-----';
  assert.deepEqual(await read(`KEY="${key}"\n# SKERRY_CORE_X="\nSKERRY_CORE_PORT='4024' # "why"\n`), {
    ...{ KEY: key, SKERRY_CORE_PORT: '4024' },
  });
});

test('a name that is no setting is told, with the one that was meant; other services’ and other programs’ are left alone', () => {
  const known = ['SKERRY_CORE_PORT', 'SKERRY_CORE_PEERS', 'DATABASE_URL'];
  const wrong = (name: string) => findMistyped([name], known)[0];
  for (const name of [
    'SKERY_CORE_PORT',
    'SKERRYCORE_PORT',
    'SKERRY_COER_PORT',
    'SKERRY_CROE_PEERS',
    'skerry_core_port',
  ])
    assert.match(wrong(name) ?? name, /is not a known setting/);
  assert.match(wrong('SKERY_CORE_PORT')!, /^SKERY_CORE_PORT .*; did you mean SKERRY_CORE_PORT\?$/);
  assert.match(wrong('SKERRY_LOG_LEVLE')!, /; did you mean SKERRY_LOG_LEVEL\?$/);
  assert.match(wrong('DATABSE_URL')!, /; did you mean DATABASE_URL\?$/);
  const fine = [
    'SKERRY_GATEWAY_PORT',
    'SKERRY_CORE_ANYTHING',
    'SKERRY_HOME',
    'NODE_OPTIONS',
    'HTTPS_PROXY',
    'PATH',
    'TZ',
  ];
  assert.deepEqual(findMistyped(fine, known), []);
});
