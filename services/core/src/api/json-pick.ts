import { ARRAY_STEP } from '../state/lists/shape.ts';

/** `.name` or `["name"]` -> name; undefined for the members of an array. */
function nameOf(step: string): string | undefined {
  if (step === ARRAY_STEP) return undefined;
  return step.startsWith('.') ? step.slice(1) : (JSON.parse(step.slice(1, -1)) as string);
}

/** The first steps of the paths, where they are names. */
export const topFieldsOf = (paths: readonly (readonly string[])[]): string[] => [
  ...new Set(paths.flatMap(([first]) => nameOf(first!) ?? [])),
];

/** The parts of a value that the paths lead to, in their places; undefined where none of them does. */
function pick(value: unknown, paths: readonly (readonly string[])[]): unknown {
  if (paths.some((path) => path.length === 0)) return value;
  if (typeof value !== 'object' || value === null) return undefined;
  if (Array.isArray(value)) {
    const inner = paths.filter(([first]) => first === ARRAY_STEP).map((path) => path.slice(1));
    return inner.length === 0 ? undefined : value.map((member) => pick(member, inner) ?? null);
  }
  const byName = Map.groupBy(paths, ([first]) => nameOf(first!));
  const picked = [...byName].flatMap(([name, own]) => {
    if (name === undefined || !Object.hasOwn(value, name)) return [];
    const part = pick(
      (value as Record<string, unknown>)[name],
      own.map((path) => path.slice(1)),
    );
    return part === undefined ? [] : [[name, part] as const];
  });
  return picked.length === 0 ? undefined : Object.fromEntries(picked);
}

/** @param paths steps of parseJsonPath */
export const pickPaths = (
  content: Readonly<Record<string, unknown>>,
  paths: readonly (readonly string[])[],
): Record<string, unknown> => (pick(content, paths) as Record<string, unknown> | undefined) ?? {};
