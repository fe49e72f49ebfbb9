import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { buildProgram, NATIVE } from '../build.ts';
import { TEST_CACHE } from './built.ts';

/** Runs a program of this folder, with some sources of the plane (their names), and says what it wrote. */
export async function runOwn(
  name: string,
  sources: readonly string[],
  flags: readonly string[] = [],
  ...args: readonly string[]
) {
  const own = fileURLToPath(new URL(`${name}.c`, import.meta.url));
  const all = [...sources.map((source) => join(NATIVE, source)), own];
  const built = await buildProgram({ name, sources: all, idleExitCode: 0 }, TEST_CACHE, flags);
  assert.ok('path' in built, 'missing' in built ? built.missing : '');
  return await promisify(execFile)(built.path, args.length > 0 ? args : ['run']);
}
