import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { access, constants, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SOURCES = fileURLToPath(new URL('../../../native/', import.meta.url));
const COMPILERS = ['cc', 'gcc', 'clang'];
const FLAGS = [
  '-std=gnu11',
  '-O2',
  '-g1',
  '-fstack-protector-strong',
  '-D_FORTIFY_SOURCE=2',
  '-Wall',
  '-Wextra',
];
/** For `npm run soak` and the tests of memory safety. */
export const SANITIZER_FLAGS = [
  '-fsanitize=address,undefined',
  '-fno-sanitize-recover=all',
  '-fno-omit-frame-pointer',
];
const COMPILE_TIMEOUT_MS = 120_000;
const MAX_OUTPUT_CHARS = 4000;

/** A program's exit code and what it said; null where it cannot be started or takes too long. */
async function runProgram(
  command: string,
  args: readonly string[],
): Promise<{ code: number | null; said: string }> {
  let said = '';
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: COMPILE_TIMEOUT_MS });
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      said = `${said}${chunk}`.slice(0, MAX_OUTPUT_CHARS);
    });
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    return { code, said };
  } catch (error) {
    return { code: null, said: (error as Error).message };
  }
}

export type BuiltPlane = { readonly path: string } | { readonly missing: string };

/**
 * The native data plane as a program, compiled when its sources are new: once for each version, in about a second. It goes to
 * `cacheDir`, since an install script would run under another user's rights, or not at all. Where it cannot be made or does
 * not run, says why.
 */
export async function buildNativePlane(
  cacheDir: string,
  extraFlags: readonly string[] = [],
): Promise<BuiltPlane> {
  if (process.platform !== 'linux') return { missing: `it needs Linux, and this is ${process.platform}` };
  const names = (await readdir(SOURCES)).filter((name) => /\.[ch]$/.test(name)).sort();
  const flags = [...FLAGS, ...extraFlags];
  const hash = createHash('sha256').update(JSON.stringify([process.arch, flags]));
  for (const name of names) hash.update(name).update(await readFile(join(SOURCES, name)));
  const path = join(cacheDir, `plane-${hash.digest('hex').slice(0, 16)}`);
  if (await runs(path)) return { path };
  try {
    await mkdir(cacheDir, { recursive: true });
  } catch (error) {
    return { missing: `there is no place for it: ${(error as Error).message}` };
  }
  const temporary = `${path}.${process.pid}`;
  const sources = names.filter((name) => name.endsWith('.c')).map((name) => join(SOURCES, name));
  const said: string[] = [];
  try {
    for (const compiler of COMPILERS) {
      const built = await runProgram(compiler, [...flags, ...sources, '-o', temporary]);
      if (built.code === 0 && (await runs(temporary))) {
        await rename(temporary, path);
        return { path };
      }
      said.push(`${compiler}: ${built.said.trim() || 'what it makes does not run'}`);
    }
  } finally {
    await rm(temporary, { force: true });
  }
  return { missing: said.join('; ') };
}

/** Whether it is there and this machine runs it. */
async function runs(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
  } catch {
    return false;
  }
  return (await runProgram(path, ['read-hellos'])).code === 0;
}
