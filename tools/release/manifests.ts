import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../source.ts';
import { packagePath } from './references.ts';

type Versions = Readonly<Record<string, string>>;
type Target = string | { readonly [condition: string]: Target };

/** What is read of a workspace's package.json. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license?: string;
  readonly bin?: Versions;
  readonly engines?: Versions;
  readonly exports?: Readonly<Record<string, string>>;
  readonly imports?: Readonly<Record<string, Target>>;
  readonly dependencies?: Versions;
  readonly optionalDependencies?: Versions;
  readonly overrides?: Readonly<Record<string, string | Versions>>;
}

/** The manifest of a package that is published, ready to be written. */
export interface PublishedManifest extends Omit<Manifest, 'exports'> {
  readonly [field: string]: unknown;
}

export const readManifest = (dir: string) =>
  JSON.parse(readFileSync(join(ROOT, dir, 'package.json'), 'utf8')) as unknown as Manifest;

/** Without a licence of its own the repository gives no rights, which npm has a word for. */
const licenseOf = (root: Manifest) => root.license ?? 'UNLICENSED';

const compiled = (source: string) => `./${packagePath(source.replace(/^\.\//, ''))}`;

const compiledTarget = (target: Target): Target =>
  typeof target === 'string'
    ? compiled(target)
    : Object.fromEntries(Object.entries(target).map(([condition, one]) => [condition, compiledTarget(one)]));

/** What others may import: the same as of the workspace, without what is there for tests. */
function exportsOf({ exports = {} }: Manifest, withTypes: boolean) {
  const offered = Object.entries(exports).filter(([name]) => !/^\.\/testing\b/.test(name));
  const target = (file: string) =>
    withTypes ? { types: file.replace(/\.js$/, '.d.ts'), default: file } : file;
  return {
    ...Object.fromEntries(offered.map(([name, source]) => [name, target(compiled(source))])),
    './package.json': './package.json',
  };
}

const importsOf = ({ imports }: Manifest) =>
  imports && {
    imports: Object.fromEntries(Object.entries(imports).map(([name, to]) => [name, compiledTarget(to)])),
  };

/** What is loaded later is not found beside an application that was bundled into one file. */
const withoutLate = (own: Manifest): Manifest =>
  own.imports?.['#compiler'] === undefined
    ? own
    : { ...own, imports: { ...own.imports, '#compiler': './src/compiler/now.ts' } };

/**
 * A library that applications install. Native engines are peers that may be missing: an application that wants their speed
 * installs them, and a page of a browser does not carry 38 MB for nothing.
 */
export function libraryManifest(own: Manifest, root: Manifest): PublishedManifest {
  const { name, version, description, dependencies = {}, optionalDependencies: native } = own;
  return {
    name,
    version,
    description,
    license: licenseOf(root),
    type: 'module',
    engines: root.engines ?? {},
    sideEffects: false,
    exports: exportsOf(own, true),
    ...importsOf(withoutLate(own)),
    files: ['dist'],
    dependencies,
    ...(native && {
      peerDependencies: native,
      peerDependenciesMeta: Object.fromEntries(
        Object.keys(native).map((engine) => [engine, { optional: true }]),
      ),
    }),
  };
}

/** A workspace inside the command's package, which declares what it needs. */
export function insideManifest(own: Manifest): PublishedManifest {
  const { name, version, description } = own;
  return { name, version, description, type: 'module', exports: exportsOf(own, false), ...importsOf(own) };
}

/** Versions of all. Two of one package cannot be side by side in the command's package. */
function unite(all: readonly Versions[]): Record<string, string> {
  const united: Record<string, string> = {};
  for (const [name, version] of all.flatMap((versions) => Object.entries(versions))) {
    const other = united[name] ?? version;
    if (other !== version) throw new Error(`${name}: ${other} and ${version}`);
    united[name] = version;
  }
  return Object.fromEntries(Object.entries(united).sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** The Node that the launcher looks for; what else the repository installs by itself is for development. */
const isNode = (name: string) => name.startsWith('node-');

/**
 * The command, with everything inside that runs everywhere: the other workspaces, and what they depend on in the versions that
 * they were tested with. npm installs only native code beside it. It would choose versions anew otherwise, and would not know
 * of overrides: it heeds neither lockfile nor overrides of a package that is installed from a file.
 */
export function commandManifest(
  own: Manifest,
  inside: readonly Manifest[],
  root: Manifest,
): PublishedManifest {
  const all = [own, ...inside];
  const nodes = Object.entries(root.optionalDependencies ?? {}).filter(([name]) => isNode(name));
  const dependencies = unite(all.map((one) => one.dependencies ?? {}));
  return {
    name: root.name,
    version: root.version,
    description: root.description,
    license: licenseOf(root),
    type: 'module',
    engines: root.engines ?? {},
    bin: own.bin ?? {},
    exports: { './package.json': './package.json' },
    files: ['bin', 'dist'],
    dependencies,
    optionalDependencies: unite([
      Object.fromEntries(nodes),
      ...all.map((one) => one.optionalDependencies ?? {}),
    ]),
    bundleDependencies: Object.keys(dependencies),
  };
}
