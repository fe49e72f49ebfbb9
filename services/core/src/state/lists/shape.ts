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

/** One step for all members of an array, which may be millions. */
function* stepsInto(value: object): Generator<[step: string, members: readonly unknown[]]> {
  if (!Array.isArray(value))
    for (const [name, member] of Object.entries(value)) yield [stepOf(name), [member]];
  else if (value.length > 0) yield [ARRAY_STEP, value];
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
      for (const [step, members] of stepsInto(value)) {
        const path = prefix + step;
        if (path.length > SHAPE_PATH_CHARS_MAX) continue;
        if (!paths.has(path) && paths.size >= SHAPE_PATHS_MAX) return [...paths].sort();
        paths.add(path);
        for (const member of members) {
          if (left === 0) break;
          if (typeof member !== 'object' || member === null) continue;
          next.push([path, member]);
          left--;
        }
      }
    }
    level = next;
  }
  return [...paths].sort();
}
