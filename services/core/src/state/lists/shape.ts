/** A path is longer or deeper than anybody would ask for: it is left out of the shape, and not found by it. */
export const SHAPE_PATHS_MAX = 64;
export const SHAPE_DEPTH_MAX = 8;
export const SHAPE_PATH_CHARS_MAX = 256;

const PLAIN = /^[A-Za-z_][A-Za-z0-9_-]*$/;

/** One step of a path in its one spelling: `.name`, `["other name"]`, or `[*]` for the members of an array. */
export const stepOf = (name: string) => (PLAIN.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`);
export const ARRAY_STEP = '[*]';

/**
 * The paths that a content has: every member at every level, those of array members once. They are in a fixed order, so
 * that equal shapes are equal texts. Breadth first: where there are too many, the outer ones stay.
 */
export function shapeOf(content: Readonly<Record<string, unknown>>): string[] {
  const paths = new Set<string>();
  let level: [prefix: string, value: unknown][] = [['', content]];
  for (let depth = 0; depth < SHAPE_DEPTH_MAX && level.length > 0; depth++) {
    const next: typeof level = [];
    for (const [prefix, value] of level) {
      if (typeof value !== 'object' || value === null) continue;
      for (const [name, member] of Object.entries(value)) {
        const path = prefix + (Array.isArray(value) ? ARRAY_STEP : stepOf(name));
        if (path.length > SHAPE_PATH_CHARS_MAX) continue;
        if (!paths.has(path) && paths.size >= SHAPE_PATHS_MAX) return [...paths].sort();
        paths.add(path);
        next.push([path, member]);
      }
    }
    level = next;
  }
  return [...paths].sort();
}
