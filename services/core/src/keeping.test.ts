import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from '@skerry/kit';
import { coreConfig } from './config.ts';
import { coreKeeping } from './keeping.ts';

test('a backup that cannot tell which wallets pay for archives is not made without them', async () => {
  const config = readConfig(coreConfig, { SKERRY_CORE_ANCHOR_FILE: '/nowhere/anchors.json' });
  await assert.rejects(coreKeeping.elsewhere!(config), { code: 'INVALID_CONFIG' });
});
