import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { CoreClient } from '@skerry/client';
import { CoreSync } from '@skerry/client/core-sync';
import { createLogger, readConfig } from '@skerry/kit';
import { sha256Hex } from '@skerry/protocol';
import { computeConfig } from '../config.ts';
import { run } from '../host/run.ts';
import { inDirectory } from '../testing/directory.ts';
import { openPrograms } from './open.ts';
import { volumesDirectory } from './programs.ts';

test('of a small disk volumes of programs have what instances are not offered, after a restart no more', () =>
  inDirectory(async (home) => {
    const config = readConfig(computeConfig, { SKERRY_HOME: home });
    const nodeId = sha256Hex(home);
    const [core, sync] = [new CoreClient({ url: 'http://127.0.0.1:1' }), new CoreSync('http://127.0.0.1:1')];
    const leftMib = async (freeGib: number) => {
      await using service = await openPrograms({
        ...{ config, core, sync, nodeId, freeGib },
        ...{ log: createLogger('test', 'silent'), signal: new AbortController().signal },
      });
      assert.equal(service.ability.reason, null);
      const left = await service.programs!.volumes.leftMib();
      assert.equal(service.diskGib, left / 1_024);
      return left;
    };
    assert.equal(await leftMib(100), 8 * 1_024);
    assert.equal(await leftMib(13), 2 * 1_024);
    const files = join(volumesDirectory(config.dataDir), 'files');
    await mkdir(files, { recursive: true });
    await run('fallocate', ['-l', '1G', join(files, 'one.plain')]);
    assert.equal(await leftMib(12), 1_024);
  }));
