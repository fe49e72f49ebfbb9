import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { findCacheDir, openCache } from '../../../services/compute/src/testing/play.ts';
import { makeFolder } from './packages.ts';
import type { Plan } from './plan.ts';

/** Two hours of emulation where the machine is busy; twenty minutes where it is not. */
const DEADLINE_MS = 7_000_000;

test('two Debian servers become a network with packages and one command each, are upgraded, lost and restored', {
  timeout: DEADLINE_MS,
}, async (t) => {
  assert.equal(process.geteuid?.(), 0, 'this soak needs root: it makes networks and builds images');
  const directory = mkdtempSync(join(tmpdir(), 'skerry-install-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const image = await openCache(findCacheDir()).ensure('debian:12', ({ message }) => console.log(message));
  const { disk, folder } = await makeFolder(image, console.log);
  const [skerry = ''] = globSync(join(folder, 'first', 'skerry_*.deb'));
  writeFileSync(
    join(directory, 'plan.json'),
    JSON.stringify({ image, disk, first: { skerry } } satisfies Plan),
  );
  const scenario = join(import.meta.dirname, 'scenario.ts');
  const inside = ['--net', '--mount', '--kill-child', '--fork', '--pid', '--mount-proc', '--'];
  const child = spawn('unshare', [...inside, process.execPath, scenario, directory], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  const [code] = (await once(child, 'exit')) as [number | null];
  assert.equal(code, 0, 'the soak failed; its last words are above');
});
