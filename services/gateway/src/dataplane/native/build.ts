import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Compiled, compileNative, runBriefly } from '@skerry/kit';

/** The folder of the plane's sources. */
export const NATIVE = fileURLToPath(new URL('../../../native/', import.meta.url));
/** For `npm run soak` and the tests of memory safety. */
export const SANITIZER_FLAGS = [
  '-fsanitize=address,undefined',
  '-fno-sanitize-recover=all',
  '-fno-omit-frame-pointer',
];

/** A program of some C files of ours. */
export interface NativeProgram {
  readonly name: string;
  readonly sources: readonly string[];
  /** How it ends where it is started without arguments and input: that shows whether this machine runs it. */
  readonly idleExitCode: number;
}

/** A program, compiled when its sources or any header are new. Where it cannot be made or does not run, says why. */
export async function buildProgram(
  { name, sources, idleExitCode }: NativeProgram,
  cacheDir: string,
  extraFlags: readonly string[] = [],
): Promise<Compiled> {
  const works = async (program: string) => (await runBriefly(program, [])).code === idleExitCode;
  const headers = await listNative('.h');
  return await compileNative({ name, sources, headers, flags: extraFlags, works }, cacheDir);
}

async function listNative(extension: '.c' | '.h'): Promise<string[]> {
  const names = (await readdir(NATIVE)).filter((name) => name.endsWith(extension));
  return names.sort().map((name) => join(NATIVE, name));
}

/** Of native/main.c, where it is not told where to listen. */
export const USAGE_EXIT_CODE = 2;

/** The native data plane. */
export async function buildNativePlane(
  cacheDir: string,
  extraFlags: readonly string[] = [],
): Promise<Compiled> {
  const plane = { name: 'plane', sources: await listNative('.c'), idleExitCode: USAGE_EXIT_CODE };
  return await buildProgram(plane, cacheDir, extraFlags);
}
