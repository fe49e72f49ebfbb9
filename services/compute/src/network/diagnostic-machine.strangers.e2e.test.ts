import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';

const SCENARIO = join(import.meta.dirname, '../testing/diagnostic-scenario.ts');

test('S18: the diagnostic machine has an address in the prefix of its node and answers pings', async () => {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  const child = spawn('unshare', ['--net', '--mount', '--', process.execPath, SCENARIO], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  assert.equal(code, 0, 'the scenario failed; its last words are above');
});
