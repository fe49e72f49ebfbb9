import { AppError } from '@skerry/protocol';

/** `modules.dep` of depmod(8): each module's path and the paths of the modules it needs. */
export function parseModulesDep(text: string): Map<string, readonly string[]> {
  const dependencies = new Map<string, readonly string[]>();
  for (const line of text.split('\n')) {
    const colon = line.indexOf(':');
    if (colon <= 0) continue;
    dependencies.set(
      line.slice(0, colon),
      line
        .slice(colon + 1)
        .split(' ')
        .filter((part) => part !== ''),
    );
  }
  return dependencies;
}

/** The name under which `modules.dep` has a module, which may be packed. */
function nameOf(dependencies: ReadonlyMap<string, readonly string[]>, path: string): string {
  const packed = ['.xz', '.zst'].map((suffix) => path + suffix).find((name) => dependencies.has(name));
  return dependencies.has(path) ? path : (packed ?? path);
}

/** The wanted modules and all they need, each after those it needs. Throws INTERNAL when one is not in the kernel's package. */
export function listInLoadOrder(
  dependencies: ReadonlyMap<string, readonly string[]>,
  wanted: readonly string[],
): string[] {
  const order = new Set<string>();
  const visiting = new Set<string>();
  const visit = (path: string) => {
    if (order.has(path) || visiting.has(path)) return;
    const needs = dependencies.get(path);
    if (needs === undefined) throw new AppError('INTERNAL', `the kernel package has no module ${path}`);
    visiting.add(path);
    // depmod lists the nearest dependency first: the farthest is loaded first.
    for (const need of [...needs].reverse()) visit(need);
    visiting.delete(path);
    order.add(path);
  };
  for (const path of wanted) visit(nameOf(dependencies, path));
  return [...order];
}
