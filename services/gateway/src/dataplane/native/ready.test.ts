import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { runBriefly } from '@skerry/kit';
import { Scene } from '../../testing/scene.ts';
import { LAYOUT_NUMBER } from './layout.ts';
import { checkReadyPlane } from './ready.ts';
import { builtForTests } from './testing/built.ts';

const path = await builtForTests();
const sha256 = createHash('sha256')
  .update(await readFile(path))
  .digest('hex');
const WHY_NOT = { code: 'INVALID_CONFIG' };

describe('a native plane that is ready', () => {
  test('is taken where it is the one that was meant, and runs', async () => {
    assert.deepEqual(await checkReadyPlane(path, sha256), { path });
    assert.deepEqual(await checkReadyPlane(path, sha256.toUpperCase()), { path });
    assert.deepEqual(await checkReadyPlane(path, undefined), { path });
    const why = async (...args: Parameters<typeof checkReadyPlane>) => {
      const checked = await checkReadyPlane(...args);
      return 'missing' in checked ? checked.missing : 'it is taken';
    };
    assert.match(await why(path, '0'.repeat(64)), new RegExp(`is ${sha256}, not 0+$`));
    assert.match(await why(`${path}-gone`, undefined), /cannot read.*ENOENT/);
    assert.match(await why(process.execPath, undefined), /does not run here/);
    const { code } = await runBriefly(path, [`layout=${LAYOUT_NUMBER + 1}`]);
    assert.equal(code, 3, 'one of another release says so');
  });

  test('serves a gateway, which starts with no other', async () => {
    const settings = { SKERRY_GATEWAY_PROGRAM: path, SKERRY_GATEWAY_PROGRAM_SHA256: sha256 };
    await using scene = await Scene.open(settings);
    await scene.start();
    const metrics = await (await fetch(`${scene.urls[2]}/metrics`)).text();
    assert.match(metrics, /^skerry_gateway_info\{data_plane="native"\} 1$/m);
    await using other = await Scene.open({ ...settings, SKERRY_GATEWAY_PROGRAM_SHA256: 'a'.repeat(64) });
    await assert.rejects(other.start(), WHY_NOT);
  });
});
