import { chmodSync, existsSync, globSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT } from '../source.ts';
import { packagePath, renameReferences, renameSource } from './references.ts';

/** Not of a package: tests and what is theirs, and what is written anew. */
const LEFT_OUT = [
  'node_modules/**',
  '**/testing/**',
  '**/*.test.ts',
  '**/*.d.ts',
  'vectors/**',
  'package.json',
  '*.sol',
  // What runs in browsers is bundled.
  'page/**',
];
const FILE_MODE = 0o644;
const PROGRAM_MODE = 0o755;

/** Modes are in the package: they must not be those that whoever makes it prefers. */
function write(to: string, content: string | Uint8Array, mode = FILE_MODE): void {
  mkdirSync(dirname(to), { recursive: true });
  writeFileSync(to, content);
  chmodSync(to, mode);
}

interface Staging {
  /** The workspace, relative to the root. */
  readonly workspace: string;
  /** What the compiler made of the repository. */
  readonly compiled: string;
  readonly to: string;
  readonly withTypes?: boolean;
}

/**
 * Writes a workspace as a package has it: sources compiled, with their maps and, on request, declarations;
 * everything that they read at run time beside them.
 */
export function stageWorkspace({ workspace, compiled, to, withTypes = false }: Staging): void {
  const top = join(ROOT, workspace);
  const files = globSync('**', { cwd: top, exclude: LEFT_OUT }).filter((path) =>
    statSync(join(top, path)).isFile(),
  );
  const isSource = (path: string) => path.endsWith('.ts') && existsSync(join(top, path));
  for (const path of files.sort()) {
    const staged = join(to, packagePath(path));
    if (path.endsWith('.ts')) {
      const made = join(compiled, workspace, path).replace(/\.ts$/, '');
      write(staged, renameReferences({ path, text: readFileSync(`${made}.js`, 'utf8') }, isSource));
      write(`${staged}.map`, renameSource(readFileSync(`${made}.js.map`, 'utf8'), path));
      if (!withTypes) continue;
      const declarations = { path, text: readFileSync(`${made}.d.ts`, 'utf8'), isDeclaration: true };
      write(staged.replace(/\.js$/, '.d.ts'), renameReferences(declarations, isSource));
    } else if (path.endsWith('.js')) {
      const text = renameReferences({ path, text: readFileSync(join(top, path), 'utf8') }, isSource);
      write(staged, text, text.startsWith('#!') ? PROGRAM_MODE : FILE_MODE);
    } else write(staged, readFileSync(join(top, path)));
  }
}

/** Of other packages: what is for compilers, and what is for whoever works on them. Nobody runs it: a quarter of all files. */
const NOT_RUN = /\.map$|\.[cm]?ts$|^(?:tests?|bench|benchmarks?|examples?|docs)\//;

/** Copies a package that is installed here, as far as it is run. */
export function stageInstalled(at: string, to: string): void {
  const top = join(ROOT, at);
  for (const path of globSync('**', { cwd: top, exclude: ['node_modules/**'] }).sort()) {
    if (NOT_RUN.test(path) || !statSync(join(top, path)).isFile()) continue;
    write(join(to, path), readFileSync(join(top, path)));
  }
}

/** Writes files that were made for a package, by their paths in it. */
export function stageMade(files: ReadonlyMap<string, Uint8Array>, to: string): void {
  for (const [path, bytes] of files) write(join(to, path), bytes);
}

/** The repository's licence, where it has one. */
export function stageLicense(to: string): void {
  const license = join(ROOT, 'LICENSE');
  if (existsSync(license)) write(join(to, 'LICENSE'), readFileSync(license));
}

export function writeJson(to: string, value: unknown): void {
  write(to, `${JSON.stringify(value, undefined, 2)}\n`);
}
