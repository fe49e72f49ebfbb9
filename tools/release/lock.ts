import { posix } from 'node:path';
import type { PublishedManifest } from './manifests.ts';

/** A package's entry in a lockfile of npm (version 3). */
export interface LockEntry {
  readonly name?: string;
  readonly version?: string;
  readonly license?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly link?: boolean;
  readonly inBundle?: boolean;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}
/** Where a package is in the tree -> its entry. */
export type LockPackages = Readonly<Record<string, LockEntry>>;

const REGISTRY = 'https://registry.npmjs.org';
const MODULES = 'node_modules/';

/** Where a package is found that another one at `from` asks for, as Node looks for it. */
function find(packages: LockPackages, from: string, name: string): string | undefined {
  for (let dir = from; ; dir = posix.dirname(dir)) {
    const at = posix.join(dir, MODULES, name);
    if (posix.basename(dir) !== 'node_modules' && packages[at]) return at;
    if (dir === '.' || dir === '') return undefined;
  }
}

const needsOf = (entry: LockEntry, withOptional: boolean) =>
  Object.keys({
    ...entry.dependencies,
    ...entry.peerDependencies,
    ...(withOptional && entry.optionalDependencies),
  });

/** The name that others import a package by. */
export const nameAt = (at: string) => at.slice(at.lastIndexOf(MODULES) + MODULES.length);

/** npm looks by this address into its cache, and asks the registry that it is configured for. */
function addressOf(at: string, { name, version, resolved }: LockEntry): string {
  const whole = name ?? nameAt(at);
  return resolved ?? `${REGISTRY}/${whole}/-/${whole.split('/').at(-1)}-${version}.tgz`;
}

/** Where the repository has what its workspaces need, beside each other. */
function reach(packages: LockPackages, workspaces: readonly string[], withOptional: boolean): Set<string> {
  const reached = new Set<string>();
  const queue = [...workspaces];
  for (let from = queue.pop(); from !== undefined; from = queue.pop()) {
    for (const name of needsOf(packages[from]!, withOptional)) {
      const at = find(packages, from, name);
      // An optional peer that nobody brings, and a workspace, which is here by itself.
      if (at === undefined || packages[at]!.link || reached.has(at)) continue;
      reached.add(at);
      queue.push(at);
    }
  }
  return reached;
}

/** What a workspace has for itself is the package's: only development has another one at the top. */
export const placeOf = (at: string) => at.slice(at.indexOf(MODULES));

/** @throws where a package would find another version than in the repository */
function checkPlaces(repository: LockPackages, reached: ReadonlySet<string>, placed: LockPackages): void {
  for (const at of reached) {
    for (const name of needsOf(repository[at]!, false)) {
      const [was, is] = [find(repository, at, name), find(placed, placeOf(at), name)];
      const [before, after] = [was && repository[was]?.version, is && placed[is]?.version];
      if (before !== after) throw new Error(`${at} would find ${name} ${after}, and not ${before}`);
    }
  }
}

/** Where the repository has what runs everywhere, of what these workspaces need: all but native code. */
export function listBundled(repository: LockPackages, workspaces: readonly string[]): string[] {
  return [...reach(repository, workspaces, false)].sort();
}

/**
 * The tree that the repository was tested with, of these workspaces alone, as a lockfile for a package that depends on what
 * they depend on.
 * @param own entries of the repository's packages themselves
 */
export function createLock(
  manifest: PublishedManifest,
  workspaces: readonly string[],
  repository: LockPackages,
  own: LockPackages,
) {
  const placed: Record<string, LockEntry> = { ...own };
  const reached = reach(repository, workspaces, true);
  for (const at of [...reached].sort()) {
    const { dev: _dev, devOptional: _devOptional, ...entry } = repository[at]!;
    const place = placeOf(at);
    if (placed[place] && placed[place].version !== entry.version)
      throw new Error(`${place}: ${entry.version} and ${placed[place].version}`);
    placed[place] = { ...entry, resolved: addressOf(place, entry) };
  }
  checkPlaces(repository, reached, placed);
  const { name, version } = manifest;
  return {
    name,
    version,
    lockfileVersion: 3,
    requires: true,
    packages: {
      '': manifest,
      ...Object.fromEntries(Object.entries(placed).sort(([one], [other]) => (one < other ? -1 : 1))),
    },
  };
}

type Overrides = Readonly<Record<string, string | Readonly<Record<string, string>>>>;

/** A package's dependencies with what the repository puts in the place of some: npm overrides only where it installs for the root. */
export function withOverrides(
  name: string,
  dependencies: Readonly<Record<string, string>> | undefined,
  overrides: Overrides | undefined,
) {
  const own = overrides?.[name];
  if (!dependencies || typeof own !== 'object') return dependencies;
  return {
    ...dependencies,
    ...Object.fromEntries(Object.entries(own).filter(([one]) => one in dependencies)),
  };
}
