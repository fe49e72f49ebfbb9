import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { playProgram } from '@skerry/kit/testing/play';

const SCENARIO = join(import.meta.dirname, '../testing/diagnostic-scenario.ts');

test('S18: the diagnostic machine has an address in the prefix of its node and answers pings', async () => {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  await playProgram('the scenario', 'unshare', ['--net', '--mount', '--', process.execPath, SCENARIO]);
});
