import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildConsole } from './build.ts';
import { type ConsoleFile, type ConsoleFiles, describeFile, PAGE_FILE } from './files.ts';
import { buildOf } from './hashes.ts';

/** A package brings the files with it; a checkout has none, and bundles its sources. */
const PACKAGED = fileURLToPath(new URL('../files', import.meta.url));

export interface Console {
  /** @param path below the page's own address; `''` is the page itself */
  find(path: string): Promise<ConsoleFile | undefined>;
  /** The hash of all its files, computed of them. Throws where the page names another one: a file was changed. */
  build(): Promise<string>;
  /** Every file by its path. */
  all(): Promise<ReadonlyMap<string, Uint8Array>>;
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

/** The build that a page says it is of; nothing where it says none. */
export const namedBuild = (page: string) =>
  /<meta name="build" content="([0-9a-f]{64})">/.exec(page)?.[1] ?? '';

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
  const load = async (isPage: boolean) => {
    if (existsSync(PACKAGED)) files ??= readPackaged(origins);
    else if (isPage || !files) files = await bundle();
    return files;
  };
  const all = async () =>
    new Map([...(await load(true))].map(([path, { bytes }]): [string, Uint8Array] => [path, bytes]));
  return {
    find: async (path) => (await load(path === '')).get(path === '' ? PAGE_FILE : path),
    all,
    async build() {
      const known = await all();
      const computed = buildOf(known);
      const named = namedBuild(new TextDecoder().decode(known.get(PAGE_FILE)));
      if (named !== computed)
        throw new Error(
          `the page names the build ${named}, and its files are ${computed}: they were changed`,
        );
      return computed;
    },
  };
}
