import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { findKept, skerryPaths } from '@skerry/kit';
import { readEnvironment } from '../config.ts';
import { loadService } from '../network/daemon.ts';
import { skerryHere } from '../testing/here.ts';
import { startUp } from '../testing/parts.ts';

/** Of a network that `skerry up` starts. */
const ROLES = ['core', 'scheduler', 'compute', 'gateway', 'credit', 'monitor', 'status'] as const;
type Role = (typeof ROLES)[number];

/** The gateway's native plane is compiled once on a machine. */
const { cache: SKERRY_CACHE } = skerryPaths(readEnvironment());

const skerry = (...args: string[]) => skerryHere(process.env, args);

async function filesBelow(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1));
}

const isThere = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  );

async function checkNames(role: Role, directory: string): Promise<void> {
  const { keeping } = await loadService(role);
  const unknown = (await filesBelow(directory)).filter((path) => !findKept(keeping.entries, path));
  assert.deepEqual(unknown, [], `${role} writes what services/${role}/src/keeping.ts does not name`);
}

/** Saves a role's directory and restores it; its secrets and its state are the same bytes. */
async function saveAndRestore(home: string, role: Role, from: string): Promise<void> {
  const [file, to] = [join(home, `${role}.skerry`), join(home, 'restored', role)];
  const made = await skerry('backup', file, '--role', role, '--data-dir', from);
  assert.equal(made.code, 0, made.err);
  const back = await skerry('restore', file, '--role', role, '--data-dir', to);
  assert.equal(back.code, 0, back.err);
  const { keeping } = await loadService(role);
  for (const { path, kind } of keeping.entries) {
    const isFile = kind === 'secret' || (kind === 'state' && !path.endsWith('/'));
    if (!isFile || !(await isThere(join(from, path)))) continue;
    assert.deepEqual(await readFile(join(to, path)), await readFile(join(from, path)), `${role}: ${path}`);
    assert.equal((await stat(join(to, path))).mode, (await stat(join(from, path))).mode, `${role}: ${path}`);
  }
}

test('whatever a role writes is in its list of what it must not lose; each is saved and restored', async () => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-roles-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(home, { recursive: true, force: true }));
  const directoryOf = (role: Role) => join(home, 'network', role);
  {
    await using _up = await startUp({ SKERRY_HOME: home, SKERRY_CACHE }, [
      '--data-dir',
      join(home, 'network'),
    ]);
    for (const role of ROLES) await checkNames(role, directoryOf(role));
  }
  // What is written at the stop, too.
  for (const role of ROLES) await checkNames(role, directoryOf(role));
  // An hour that was being measured: whoever restores it reports it no second time.
  const hours = join(directoryOf('monitor'), 'hours');
  await mkdir(hours, { recursive: true });
  await writeFile(join(hours, '1000.jsonl'), '{}\n');
  await writeFile(join(hours, '2000.signed'), '{}\n');
  for (const role of ROLES) await saveAndRestore(home, role, directoryOf(role));
  const restored = await readdir(join(home, 'restored', 'monitor', 'hours'));
  assert.ok(restored.includes('2000.signed') && !restored.includes('1000.jsonl'), restored.join());
  const present = Math.floor(Date.now() / 3_600_000) * 3_600_000;
  assert.ok(restored.includes(`${present}.done`) || restored.includes(`${present - 3_600_000}.done`));
});
