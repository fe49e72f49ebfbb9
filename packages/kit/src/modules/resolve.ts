import { readdirSync, readFileSync } from 'node:fs';
import { type ResolveFnOutput, type ResolveHookContext, registerHooks } from 'node:module';
import { openBundles } from './bundles.ts';

/**
 * `--import` this, and Node finds modules faster: a start is for the most part looking for hundreds of files whose names already say
 * where they are. Nothing is remembered beyond the process, and sources are read as ever, so what is edited is what runs. What a
 * name does not decide is left to Node, its errors too.
 */

/** What `npm ci` bundled of a name that Node finds at a URL (openBundles). */
export const findBundle = openBundles(new URL('../../../../node_modules/', import.meta.url));

type Next = (specifier: string, context?: Partial<ResolveHookContext>) => ResolveFnOutput;

/** A directory: what is in it, and the package that it belongs to. */
interface Folder {
  readonly names: ReadonlySet<string>;
  /** Of the package: whether `.js` and `.ts` in it are modules. */
  readonly isOfModules: boolean;
  /** Of the package: where its files find others, which is the same for all of them. */
  readonly found: Map<string, ResolveFnOutput>;
}

const folders = new Map<string, Folder>();

function list(path: string): ReadonlySet<string> {
  try {
    return new Set(readdirSync(path));
  } catch {
    return new Set();
  }
}

function isOfModules(path: string): boolean {
  const manifest: unknown = JSON.parse(readFileSync(path, 'utf8'));
  return (
    typeof manifest === 'object' && manifest !== null && 'type' in manifest && manifest.type === 'module'
  );
}

/** @param path with a slash at its end */
function open(path: string): Folder {
  const known = folders.get(path);
  if (known) return known;
  const names = list(path);
  const top = path === '/' || names.has('package.json');
  const of = top ? undefined : open(path.slice(0, path.lastIndexOf('/', path.length - 2) + 1));
  const folder = {
    names,
    isOfModules: of?.isOfModules ?? (names.has('package.json') && isOfModules(`${path}package.json`)),
    found: of?.found ?? new Map<string, ResolveFnOutput>(),
  };
  folders.set(path, folder);
  return folder;
}

const SCHEME = 'file://';
/** Paths are parts of URLs as they stand, where nothing in them is escaped. */
const isPlain = (url: string | undefined): url is string =>
  url?.startsWith('file:///') === true && !/[%?#]/.test(url);
const folderOf = (url: string) => open(url.slice(SCHEME.length, url.lastIndexOf('/') + 1));

/** A file that is named as it is called. Symbolic links are inside of no package. */
function findBeside(specifier: string, parent: string): ResolveFnOutput | undefined {
  const ending = /\.(?:ts|js)$/.exec(specifier)?.[0];
  if (ending === undefined) return undefined;
  const { href } = new URL(specifier, parent);
  if (!isPlain(href)) return undefined;
  const folder = folderOf(href);
  if (!folder.isOfModules || !folder.names.has(href.slice(href.lastIndexOf('/') + 1))) return undefined;
  return { url: href, format: ending === '.js' ? 'module' : 'module-typescript', shortCircuit: true };
}

const orBundle = (specifier: string, found: ResolveFnOutput): ResolveFnOutput => {
  const url = findBundle(specifier, found.url);
  return url === undefined ? found : { url, format: 'module', shortCircuit: true };
};

function findPackage(specifier: string, parent: string, node: () => ResolveFnOutput): ResolveFnOutput {
  const { found } = folderOf(parent);
  const known = found.get(specifier);
  if (known) return known;
  const result = { ...orBundle(specifier, node()), shortCircuit: true };
  found.set(specifier, result);
  return result;
}

function resolve(specifier: string, context: ResolveHookContext, next: Next): ResolveFnOutput {
  const { parentURL, conditions } = context;
  const node = () => next(specifier, context);
  if (specifier.startsWith('node:') || !isPlain(parentURL)) return node();
  // What is required is CommonJS for the most part: Node's own way of finding it.
  if (!conditions.includes('import')) return orBundle(specifier, node());
  if (specifier.startsWith('.')) return findBeside(specifier, parentURL) ?? node();
  return findPackage(specifier, parentURL, node);
}

registerHooks({ resolve });
