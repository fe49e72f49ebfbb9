import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { buildNativePlane } from '../../services/gateway/src/dataplane/native/build.ts';
import { ROOT } from '../source.ts';
import type { Inside } from './bill.ts';
import { NATIVE_PLANE, NODE, TREE } from './layout.ts';

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const readManifest = (directory: string) =>
  JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as Manifest;

/** As npm names a platform. */
const PLATFORM = `${process.platform}-${process.arch}`;
const NODE_PACKAGE = `node-${PLATFORM}`;

/** What Node itself comes from: of it the tree has the program alone. */
export const readNodeManifest = (): Inside =>
  JSON.parse(readFileSync(join(ROOT, 'node_modules', NODE_PACKAGE, 'package.json'), 'utf8')) as Inside;

/** Of native modules: what is for other platforms, or for those who compile against it. */
function isWanted(path: string): boolean {
  const within = path.split('/');
  const at = within.lastIndexOf('prebuilds');
  const isForeign = at !== -1 && within.length > at + 1 && within[at + 1] !== PLATFORM;
  return !isForeign && !/\.(?:a|h|c|cc|gyp|pc)$/.test(path);
}

/** Files of packages that are only for those who work on them: settings of their tools, tests of PostgreSQL, a page for the web. */
const FOR_MAKERS =
  /\/node_modules.*(?:\/\.(?:npmignore|eslintrc\.js|travis\.yml)|\/postgresql\/pgxs|\/pino\/index\.html|\/fastify\/integration)$/;

/** Native modules of this platform, and what they need that the command's package does not have. */
function listNative(staged: string): string[] {
  const found = new Set<string>();
  const queue = Object.keys(readManifest(staged).optionalDependencies ?? {});
  for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
    const from = join(ROOT, 'node_modules', name);
    if (found.has(name) || !existsSync(from) || existsSync(join(staged, 'node_modules', name))) continue;
    found.add(name);
    queue.push(...Object.keys(readManifest(from).dependencies ?? {}));
  }
  found.delete(NODE_PACKAGE);
  return [...found].sort();
}

/** So that the first gateway on a machine without a compiler has it. Symbols would tell where it was built. */
async function compilePlane(to: string): Promise<void> {
  rmSync(to, { recursive: true, force: true });
  const built = await buildNativePlane(to);
  if ('missing' in built) throw new Error(`the native data plane cannot be built: ${built.missing}`);
  execFileSync('strip', ['--strip-all', built.path]);
}

/**
 * Everything that is not Debian's, below `root`: Node, the command's package as it is published, and native modules of this
 * machine's architecture. What others would find elsewhere (npm, headers, other platforms) is left out.
 */
export async function stageTree(staged: string, root: string): Promise<void> {
  const tree = join(root, TREE);
  mkdirSync(dirname(tree), { recursive: true });
  cpSync(staged, tree, { recursive: true, verbatimSymlinks: true, filter: (path) => !FOR_MAKERS.test(path) });
  for (const name of listNative(staged))
    cpSync(join(ROOT, 'node_modules', name), join(tree, 'node_modules', name), {
      recursive: true,
      verbatimSymlinks: true,
      filter: (path) => isWanted(path.slice(ROOT.length)) && !FOR_MAKERS.test(path),
    });
  cpSync(join(ROOT, 'node_modules', NODE_PACKAGE, 'bin/node'), join(root, NODE));
  await compilePlane(join(root, NATIVE_PLANE));
}

/** The same modes and times everywhere, whoever builds it, whenever. */
export function settle(path: string, epoch: number): number {
  const stats = lstatSync(path);
  let bytes = stats.isFile() ? stats.size : 0;
  if (stats.isDirectory())
    for (const name of readdirSync(path).sort()) bytes += settle(join(path, name), epoch);
  if (!stats.isSymbolicLink()) {
    const isRun = stats.isDirectory() || (stats.mode & 0o111) !== 0;
    const isSecret = basename(path).endsWith('.env') && path.includes('/etc/');
    chmodSync(path, isSecret ? 0o640 : isRun ? 0o755 : 0o644);
  }
  lutimesSync(path, epoch, epoch);
  return bytes;
}
