import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { access, constants, mkdir, readFile, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';

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
const COMPILE_TIMEOUT_MS = 120_000;
const MAX_OUTPUT_CHARS = 4000;

export interface BriefOptions {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number;
  /** In place of this process's own environment. */
  readonly env?: NodeJS.ProcessEnv;
}

/** A program's exit code and what it said; null where it cannot be started or takes too long. */
export async function runBriefly(
  command: string,
  args: readonly string[],
  { signal, timeoutMs = COMPILE_TIMEOUT_MS, env }: BriefOptions = {},
): Promise<{ code: number | null; said: string }> {
  let said = '';
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: timeoutMs,
    ...(signal ? { signal } : {}),
    ...(env ? { env } : {}),
  });
  // It has neither where it could not be started for want of descriptors, which is told as an error.
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk) => {
      said = `${said}${chunk}`.slice(0, MAX_OUTPUT_CHARS);
    });
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    return { code, said };
  } catch (error) {
    return { code: null, said: (error as Error).message };
  }
}

/** Something that a C compiler makes of files of ours. */
export interface NativeRecipe {
  readonly name: string;
  /** Of the file's name, such as `.node`. */
  readonly extension?: string;
  readonly sources: readonly string[];
  /** Files beside them that it is made of. */
  readonly headers: readonly string[];
  readonly flags?: readonly string[];
  /** What was made runs on this machine. */
  readonly works: (path: string) => Promise<boolean>;
  readonly signal?: AbortSignal;
}

export type Compiled = { readonly path: string } | { readonly missing: string };

const isRunnable = (path: string) =>
  access(path, constants.X_OK).then(
    () => true,
    () => false,
  );

/**
 * Compiles into `cacheDir` where sources, headers or flags are new: once for each version, in about a second. Not while
 * npm installs: that may run under another user's rights, or not at all. Where it cannot be made or does not run, says why.
 */
export async function compileNative(recipe: NativeRecipe, cacheDir: string): Promise<Compiled> {
  const { name, extension = '', sources, headers, works, signal } = recipe;
  if (process.platform !== 'linux') return { missing: `it requires Linux, not ${process.platform}` };
  const flags = [...FLAGS, ...(recipe.flags ?? [])];
  const hash = createHash('sha256').update(JSON.stringify([process.arch, flags]));
  for (const file of [...sources, ...headers]) hash.update(basename(file)).update(await readFile(file));
  const path = join(cacheDir, `${name}-${hash.digest('hex').slice(0, 16)}${extension}`);
  if ((await isRunnable(path)) && (await works(path))) return { path };
  try {
    await mkdir(cacheDir, { recursive: true });
  } catch (error) {
    return { missing: `cannot create its directory: ${(error as Error).message}` };
  }
  const temporary = `${path}.${process.pid}${extension}`;
  const said: string[] = [];
  try {
    for (const compiler of COMPILERS) {
      const built = await runBriefly(compiler, [...flags, ...sources, '-o', temporary], { signal });
      if (built.code === 0 && (await works(temporary))) {
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
