import assert from 'node:assert/strict';
import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { playProgram } from '@skerry/kit/testing/play';
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
  const program = [...inside, process.execPath, scenario, directory];
  await playProgram('the soak', 'unshare', program, { signal: t.signal, killSignal: 'SIGKILL' });
});
