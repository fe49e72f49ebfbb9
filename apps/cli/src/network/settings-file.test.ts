import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createTestDir } from '../testing/run.ts';
import { readSettingsFile } from './settings-file.ts';

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
