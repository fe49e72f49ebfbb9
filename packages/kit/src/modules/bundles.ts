import { readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Of what a bundle was made: its size, and when it was last written. */
type Input = readonly [path: string, bytes: number, modifiedMs: number];

/** A package's entry with everything behind it, in few files. */
interface Bundle {
  /** The file that Node finds by the name, relative to `node_modules`. */
  readonly entry: string;
  /** Relative to the list. */
  readonly file: string;
  /** Relative to `node_modules`. */
  readonly inputs: readonly Input[];
}

/** By the name that is imported. */
type List = Readonly<Record<string, Bundle>>;

function read(list: URL): List {
  try {
    return JSON.parse(readFileSync(list, 'utf8')) as List;
  } catch {
    return {};
  }
}

/**
 * What `npm ci` bundled (tools/bundle.js); where packages were installed in another way, nothing. The result gives the URL of the
 * bundle that stands for a name, and none where a file behind it is not the one that the bundle was made of.
 *
 * @param modules the `node_modules`, with a slash at its end
 * @returns takes a name and the URL that Node finds by it
 */
export function openBundles(
  modules: URL,
  list = new URL('.cache/skerry-bundles/list.json', modules),
): (specifier: string, found: string) => string | undefined {
  const top = fileURLToPath(modules);
  const isAsItWas = ([path, bytes, modifiedMs]: Input) => {
    const now = statSync(top + path, { throwIfNoEntry: false });
    return now !== undefined && now.size === bytes && now.mtimeMs === modifiedMs;
  };
  let bundles: List | undefined;
  return (specifier, found) => {
    bundles ??= read(list);
    if (!Object.hasOwn(bundles, specifier)) return undefined;
    const { entry, file, inputs } = bundles[specifier]!;
    const isSame = found === new URL(entry, modules).href && inputs.every(isAsItWas);
    return isSame ? new URL(file, list).href : undefined;
  };
}
