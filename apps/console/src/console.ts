import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildConsole } from './build.ts';
import { type ConsoleFile, type ConsoleFiles, describeFile, PAGE_FILE } from './files.ts';

/** A package brings the files with it; a checkout has none, and bundles its sources. */
const PACKAGED = fileURLToPath(new URL('../files', import.meta.url));

export interface Console {
  /** @param path below the page's own address; `''` is the page itself */
  find(path: string): Promise<ConsoleFile | undefined>;
  /** The hash of all its files, which the page shows in its footer: the same for the same sources. */
  build(): Promise<string>;
}

const describeAll = (
  files: Iterable<readonly [string, Uint8Array]>,
  origins: readonly string[],
): ConsoleFiles => new Map([...files].map(([path, bytes]) => [path, describeFile(path, bytes, origins)]));

function readPackaged(origins: readonly string[]): ConsoleFiles {
  const paths = globSync('**', { cwd: PACKAGED }).filter((path) => statSync(join(PACKAGED, path)).isFile());
  return describeAll(
    paths.map((path) => [path, readFileSync(join(PACKAGED, path))] as const),
    origins,
  );
}

const newestOf = (sources: readonly string[]) =>
  Math.max(...sources.map((source) => statSync(source, { throwIfNoEntry: false })?.mtimeMs ?? Infinity));

/** Bundles when the page is asked for first, and again when it is asked for after a source has changed: a reload shows the change. */
function bundleOnDemand(origins: readonly string[]): () => Promise<ConsoleFiles> {
  let known:
    | { readonly files: ConsoleFiles; readonly sources: readonly string[]; readonly atMs: number }
    | undefined;
  let running: Promise<ConsoleFiles> | undefined;
  const bundle = async () => {
    const atMs = Date.now();
    const { files, sources } = await buildConsole();
    known = { files: describeAll(files, origins), sources, atMs };
    return known.files;
  };
  return async () => {
    if (known && newestOf(known.sources) < known.atMs) return known.files;
    running ??= bundle().finally(() => {
      running = undefined;
    });
    return running;
  };
}

/**
 * The console's files. Nothing is read or bundled before the first one is asked for.
 * @param origins services that are asked over plain HTTP, and that the page may therefore ask
 */
export function openConsole(origins: readonly string[] = []): Console {
  let files: ConsoleFiles | undefined;
  const bundle = bundleOnDemand(origins);
  const find = async (path: string) => {
    if (existsSync(PACKAGED)) files ??= readPackaged(origins);
    else if (path === '' || !files) files = await bundle();
    return files.get(path === '' ? PAGE_FILE : path);
  };
  return {
    find,
    async build() {
      const page = new TextDecoder().decode((await find(''))?.bytes);
      return /<meta name="build" content="([0-9a-f]+)">/.exec(page)?.[1] ?? '';
    },
  };
}
