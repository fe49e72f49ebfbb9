import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { access, constants, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of the plane's sources. */
export const NATIVE = fileURLToPath(new URL('../../../native/', import.meta.url));
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

/** A program of some C files of ours. */
export interface NativeProgram {
  readonly name: string;
  readonly sources: readonly string[];
  /** How it ends where it is started without arguments and input: that shows whether this machine runs it. */
  readonly idleExitCode: number;
}

export type BuiltProgram = { readonly path: string } | { readonly missing: string };

/**
 * A program, compiled when its sources or any header are new: once for each version, in about a second. Where it cannot be
 * made or does not run, says why.
 */
export async function buildProgram(
  { name, sources, idleExitCode }: NativeProgram,
  cacheDir: string,
  extraFlags: readonly string[] = [],
): Promise<BuiltProgram> {
  if (process.platform !== 'linux') return { missing: `it requires Linux, not ${process.platform}` };
  const flags = [...FLAGS, ...extraFlags];
  const hash = createHash('sha256').update(JSON.stringify([process.arch, flags]));
  for (const source of [...sources, ...(await listNative('.h'))])
    hash.update(basename(source)).update(await readFile(source));
  const path = join(cacheDir, `${name}-${hash.digest('hex').slice(0, 16)}`);
  const runs = async (program: string) => (await runProgram(program, [])).code === idleExitCode;
  if ((await isThere(path)) && (await runs(path))) return { path };
  try {
    await mkdir(cacheDir, { recursive: true });
  } catch (error) {
    return { missing: `cannot create its directory: ${(error as Error).message}` };
  }
  const temporary = `${path}.${process.pid}`;
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

async function isThere(path: string): Promise<boolean> {
  return await access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

async function listNative(extension: '.c' | '.h'): Promise<string[]> {
  const names = (await readdir(NATIVE)).filter((name) => name.endsWith(extension));
  return names.sort().map((name) => join(NATIVE, name));
}

/** Of native/main.c, where it is not told where to listen. */
const USAGE_EXIT_CODE = 2;

/**
 * The native data plane. It goes to `cacheDir`, since an install script would run under another user's rights, or not at
 * all.
 */
export async function buildNativePlane(
  cacheDir: string,
  extraFlags: readonly string[] = [],
): Promise<BuiltProgram> {
  const plane = { name: 'plane', sources: await listNative('.c'), idleExitCode: USAGE_EXIT_CODE };
  return await buildProgram(plane, cacheDir, extraFlags);
}
