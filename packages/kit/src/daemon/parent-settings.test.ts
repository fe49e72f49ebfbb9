import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { awaitReady } from '../testing/processes.ts';

const MODULE = new URL('./parent-settings.ts', import.meta.url).href;
const PROGRAM = `
  const { awaitSettings } = await import(${JSON.stringify(MODULE)});
  await awaitSettings().then(
    (settings) => process.send(settings),
    (error) => process.exit(error.code === 'SHUTTING_DOWN' ? 7 : 8),
  );
  process.disconnect();
`;

const start = () => fork('-', [], { execArgv: ['--input-type=module', '-e', PROGRAM], stdio: 'inherit' });

test('settings arrive that were said before anyone waited for them', async () => {
  const child = start();
  child.send('another word');
  child.send({ settings: { SKERRY_X: 'y' } });
  const ended = once(child, 'exit');
  assert.deepEqual(await awaitReady(child, 'the child'), { SKERRY_X: 'y' });
  await ended;
});

test('a parent that goes before it says them ends the wait', async () => {
  const child = start();
  child.disconnect();
  assert.deepEqual(await once(child, 'exit'), [7, null]);
});
