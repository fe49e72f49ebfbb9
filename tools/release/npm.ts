import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { buildConsole } from '@skerry/console';
import { PACKAGES, ROOT } from '../source.ts';
import {
  createLock,
  type LockEntry,
  type LockPackages,
  listBundled,
  nameAt,
  placeOf,
  withOverrides,
} from './lock.ts';
import {
  commandManifest,
  insideManifest,
  libraryManifest,
  type PublishedManifest,
  readManifest,
} from './manifests.ts';
import type { Release } from './release.ts';
import { runNpm } from './run-npm.ts';
import { writeBillOfMaterials } from './sbom.ts';
import { stageInstalled, stageLicense, stageMade, stageWorkspace, writeJson } from './stage.ts';

const COMMAND = 'apps/cli';
/** In the order in which one needs the other. */
const LIBRARIES = ['packages/protocol', 'packages/client'];

/** The compiler's JavaScript of every workspace, and declarations of the libraries. */
function compile(to: string): void {
  const compiler = join(ROOT, 'node_modules/.bin/tsc');
  for (const project of ['tsconfig.json', 'tsconfig.libraries.json']) {
    const options = ['--project', join(ROOT, 'tools/release', project), '--outDir', to];
    execFileSync(compiler, options, { stdio: ['ignore', 'inherit', 'inherit'] });
  }
}

/** The tree that the repository is tested with, with what it overrides written out. */
export function readRepositoryLock(): LockPackages {
  const { overrides } = readManifest('.');
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as unknown as {
    packages: LockPackages;
  };
  return Object.fromEntries(
    Object.entries(lock.packages).map(([at, entry]) => {
      const dependencies = withOverrides(nameAt(at), entry.dependencies, overrides);
      return [at, dependencies ? { ...entry, dependencies } : entry];
    }),
  );
}

/** `npm pack` names the file and decides what is in it, as when it is published. */
function pack(staged: string, release: Release): string {
  mkdirSync(release.files, { recursive: true });
  const out = runNpm(['pack', '--ignore-scripts', '--json', '--pack-destination', release.files], staged);
  const [{ filename }] = JSON.parse(out) as unknown as [{ filename: string }];
  return filename;
}

function stageLibrary(workspace: string, compiled: string, release: Release): PublishedManifest {
  const to = join(release.staged, workspace.split('/').at(-1)!);
  const manifest = libraryManifest(readManifest(workspace), readManifest('.'));
  stageWorkspace({ workspace, compiled, to, withTypes: true });
  writeJson(join(to, 'package.json'), manifest);
  stageLicense(to);
  return manifest;
}

/** What others made, at the places where the command's package has it. */
function stageThirdParty(repository: LockPackages, workspaces: readonly string[], to: string): void {
  for (const at of listBundled(repository, workspaces)) {
    const staged = join(to, placeOf(at));
    stageInstalled(at, staged);
    const { dependencies } = repository[at]!;
    const manifest = readManifest(at);
    const isOverridden = Object.entries(dependencies ?? {}).some(
      ([name, spec]) => manifest.dependencies?.[name] !== spec,
    );
    if (isOverridden) writeJson(join(staged, 'package.json'), { ...manifest, dependencies });
  }
}

/** Where the console looks for its files in a package. */
const CONSOLE_FILES = 'node_modules/@skerry/console/files';

function stageCommand(
  compiled: string,
  repository: LockPackages,
  release: Release,
  page: ReadonlyMap<string, Uint8Array>,
) {
  const to = join(release.staged, 'skerry');
  const inside = PACKAGES.map((one) => one.dir).filter((dir) => dir !== COMMAND);
  const manifests = inside.map(readManifest);
  const own = Object.fromEntries(
    manifests.map(({ name, version }) => [`node_modules/${name}`, { version, inBundle: true }]),
  );
  const manifest = commandManifest(readManifest(COMMAND), manifests, readManifest('.'));
  stageWorkspace({ workspace: COMMAND, compiled, to });
  for (const [index, workspace] of inside.entries()) {
    const at = join(to, 'node_modules', manifests[index]!.name);
    stageWorkspace({ workspace, compiled, to: at });
    writeJson(join(at, 'package.json'), insideManifest(manifests[index]!));
  }
  stageMade(page, join(to, CONSOLE_FILES));
  stageThirdParty(repository, [COMMAND, ...inside], to);
  writeJson(join(to, 'package.json'), manifest);
  stageLicense(to);
  // The package asks for native code of all, and for Node.
  const { optionalDependencies = {} } = manifest;
  const asking = { ...repository, [COMMAND]: { ...repository[COMMAND], optionalDependencies } };
  return { manifest, lock: createLock(manifest, [COMMAND, ...inside], asking, own) };
}

/** A library as an entry of a lockfile, of another package that needs it. */
function entryOf(workspace: string): [string, LockEntry] {
  const { name, version, dependencies, license } = libraryManifest(
    readManifest(workspace),
    readManifest('.'),
  );
  return [
    `node_modules/${name}`,
    { version, ...(license && { license }), ...(dependencies && { dependencies }) },
  ];
}

/** The three packages, and what is inside each. Gives the names of the files. */
export async function releasePackages(release: Release): Promise<string[]> {
  const { files: page } = await buildConsole();
  const compiled = join(release.staged, '.compiled');
  rmSync(release.staged, { recursive: true, force: true });
  compile(compiled);
  const repository = readRepositoryLock();
  const libraries = LIBRARIES.map((workspace, index) => {
    const manifest = stageLibrary(workspace, compiled, release);
    const own = LIBRARIES.slice(0, index).map(entryOf);
    const within = LIBRARIES.slice(0, index + 1);
    return { manifest, lock: createLock(manifest, within, repository, Object.fromEntries(own)) };
  });
  const made = [...libraries, stageCommand(compiled, repository, release, page)];
  rmSync(compiled, { recursive: true });
  return made.flatMap(({ manifest, lock }) => {
    const file = pack(join(release.staged, manifest.name.split('/').at(-1)!), release);
    return [file, writeBillOfMaterials(file, manifest, lock, release)];
  });
}
