import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Compiled, compileNative, runBriefly } from '@skerry/kit';
import { VERDICTS } from './addon.ts';

const SOURCE = fileURLToPath(new URL('../../../../native/batch.c', import.meta.url));
const requireNative = createRequire(import.meta.url);

/** Of libsecp256k1 as the npm package builds it; with 128-bit numbers on every machine that has them. */
const LIBRARY_FLAGS = [
  'ECMULT_GEN_PREC_BITS=4',
  'ECMULT_WINDOW_SIZE=15',
  'USE_ENDOMORPHISM=1',
  'USE_NUM_NONE=1',
  'USE_FIELD_INV_BUILTIN=1',
  'USE_SCALAR_INV_BUILTIN=1',
  'HAVE___INT128=1',
  'USE_FIELD_5X52=1',
  'USE_SCALAR_4X64=1',
].map((flag) => `-D${flag}`);
const ARCHITECTURE_FLAGS: Readonly<Record<string, readonly string[]>> = {
  x64: ['-DUSE_ASM_X86_64=1'],
  arm64: [],
};
const ADDON_FLAGS = [
  '-fPIC',
  '-shared',
  // Names of this library stay its own: the npm package's are in the same process.
  '-fvisibility=hidden',
  '-Wl,-Bsymbolic',
  '-Wno-unused-function',
  '-Wno-nonnull-compare',
];

/** Loads an addon and asks it about a claim of zeros: exits with its verdict. */
const PROBE = `process.exit(require(process.argv[1]).check(new Uint8Array(100), new Uint8Array(64)))`;

async function findLibrary(): Promise<{ directory: string; manifest: string } | undefined> {
  try {
    const manifest = requireNative.resolve('secp256k1/package.json');
    await readFile(join(dirname(manifest), 'src/secp256k1/src/secp256k1.c'));
    return { directory: join(dirname(manifest), 'src/secp256k1'), manifest };
  } catch {
    return undefined;
  }
}

/**
 * native/batch.c, compiled with the source of libsecp256k1 that the npm package brings and the headers that Node brings.
 * Where one of them or a compiler is missing, says so.
 */
export async function buildBatchAddon(
  cacheDir: string,
  signal?: AbortSignal,
  extraFlags: readonly string[] = [],
): Promise<Compiled> {
  const forMachine = ARCHITECTURE_FLAGS[process.arch];
  if (!forMachine) return { missing: `it is not made for ${process.arch}` };
  const library = await findLibrary();
  if (!library) return { missing: 'the source of libsecp256k1 is not here (npm package secp256k1)' };
  const node = join(dirname(process.execPath), '../include/node');
  const includes = [library.directory, join(library.directory, 'src'), node];
  const recipe = {
    name: 'batch',
    extension: '.node',
    sources: [SOURCE],
    headers: [library.manifest],
    flags: [
      ...ADDON_FLAGS,
      ...LIBRARY_FLAGS,
      ...forMachine,
      ...includes.flatMap((path) => ['-isystem', path]),
      ...extraFlags,
    ],
    works: async (path: string) =>
      (await runBriefly(process.execPath, ['-e', PROBE, path], { signal })).code === VERDICTS.fails,
    ...(signal ? { signal } : {}),
  };
  return await compileNative(recipe, cacheDir);
}
