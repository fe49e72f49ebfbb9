import { posix } from 'node:path';
import { parseSync, Visitor } from 'oxc-parser';

/** Where a file of a workspace is in its package, both relative to their tops: sources compiled, everything else as it is. */
export function packagePath(path: string): string {
  return path.replace(/^src\//, 'dist/').replace(/(?<!\.d)\.ts$/, '.js');
}

interface File {
  /** Relative to the workspace's top, as the source has it. */
  readonly path: string;
  readonly text: string;
  readonly isDeclaration?: boolean;
}

/**
 * Compiled JavaScript or declarations, whose strings that name a source of the workspace name what that became. The compiler
 * does so in imports alone: a worker is named by a URL, and declarations keep what the source says.
 * @param isSource says of a path, relative to the workspace's top, whether it is a source
 * @throws where a string ends as a source does and names none: it would be looked for at run time
 */
export function renameReferences(file: File, isSource: (path: string) => boolean): string {
  const { path, text, isDeclaration = false } = file;
  const names: { readonly start: number; readonly end: number; readonly value: string }[] = [];
  new Visitor({
    Literal: ({ value, start, end }) => {
      if (typeof value === 'string' && value.endsWith('.ts')) names.push({ start, end, value });
    },
    TemplateElement: ({ value }) => {
      if (value.raw.endsWith('.ts'))
        throw new Error(`${path} puts the name of a source together: ${value.raw}`);
    },
  }).visit(parseSync(isDeclaration ? 'x.d.ts' : 'x.js', text).program);
  return names.reduceRight((renamed, { start, end, value }) => {
    const target = posix.join(posix.dirname(path), value);
    if (!/^\.{1,2}\//.test(value) || !isSource(target))
      throw new Error(`${path} names ${value}, no source of its own`);
    const name = posix.relative(posix.dirname(packagePath(path)), packagePath(target));
    return `${renamed.slice(0, start)}'${name.startsWith('.') ? name : `./${name}`}'${renamed.slice(end)}`;
  }, text);
}

/** A source map beside its file in the package; the source itself is inside it. */
export function renameSource(map: string, path: string): string {
  const parsed = JSON.parse(map) as unknown as { sources: string[] };
  const source = posix.relative(posix.dirname(packagePath(path)), path);
  return JSON.stringify({ ...parsed, sources: [source] });
}
