/** A path is longer or deeper than anybody would ask for: it is left out of the shape, and not found by it. */
export const SHAPE_PATHS_MAX = 64;
export const SHAPE_DEPTH_MAX = 8;
export const SHAPE_PATH_CHARS_MAX = 256;
/** Objects and arrays of one content that are looked into; what only others have is left out. */
const SHAPE_VALUES_MAX = 20_000;

const PLAIN = /^[A-Za-z_][A-Za-z0-9_-]*$/;

/** One step of a path in its one spelling: `.name`, `["other name"]`, or `[*]` for the members of an array. */
export const stepOf = (name: string) => (PLAIN.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`);
export const ARRAY_STEP = '[*]';

/** Paths that were met lately, by what they begin with and by name: applications have few, and making one takes longer than looking. */
const REMEMBERED_MAX = 10_000;
let remembered = new Map<string, Map<string, string>>();
let rememberedCount = 0;

function pathOf(prefix: string, name: string): string {
  const known = remembered.get(prefix)?.get(name);
  if (known !== undefined) return known;
  const path = prefix + stepOf(name);
  if (path.length > SHAPE_PATH_CHARS_MAX) return path;
  if (rememberedCount++ === REMEMBERED_MAX) [remembered, rememberedCount] = [new Map(), 1];
  const paths = remembered.get(prefix) ?? new Map<string, string>();
  remembered.set(prefix, paths.set(name, path));
  return path;
}

type Member = readonly [path: string, values: readonly unknown[]];

/**
 * What an object or array has below its own path; the members of an array, which may be millions, have one path. Each path is made when it is
 * asked for: a stranger's object may have hundreds of thousands, of which few are looked at, and the others would drive out what is remembered.
 */
function* membersOf(prefix: string, value: object): Generator<Member> {
  if (!Array.isArray(value))
    for (const [name, member] of Object.entries(value)) yield [pathOf(prefix, name), [member]];
  else if (value.length > 0) yield [prefix + ARRAY_STEP, value];
}

/**
 * The paths that a content has: every member at every level, those of array members once. They are in a fixed order, so
 * that equal shapes are equal texts. Breadth first: where there are too many, the outer ones stay.
 */
export function shapeOf(content: Readonly<Record<string, unknown>>): string[] {
  const paths = new Set<string>();
  let left = SHAPE_VALUES_MAX;
  let level: [prefix: string, value: object][] = [['', content]];
  for (let depth = 0; depth < SHAPE_DEPTH_MAX && level.length > 0; depth++) {
    const next: typeof level = [];
    for (const [prefix, value] of level) {
      for (const [path, values] of membersOf(prefix, value)) {
        if (path.length > SHAPE_PATH_CHARS_MAX) continue;
        if (!paths.has(path) && paths.size >= SHAPE_PATHS_MAX) return [...paths].sort();
        paths.add(path);
        for (const one of values) {
          if (left === 0) break;
          if (typeof one !== 'object' || one === null) continue;
          next.push([path, one]);
          left--;
        }
      }
    }
    level = next;
  }
  return [...paths].sort();
}
