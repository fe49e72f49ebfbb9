const HASH = /^[0-9a-f]{64}$/;
const NAMED_MAX = 20;
const VALUES_MAX = 10_000;

/** Hashes that a content names, each once, in order; a large content is not read to its end. */
export function namedIn(content: unknown): string[] {
  const found = new Set<string>();
  const waiting: unknown[] = [content];
  for (let seen = 0; waiting.length > 0 && seen < VALUES_MAX && found.size < NAMED_MAX; seen++) {
    const value = waiting.shift();
    if (typeof value === 'string') {
      if (HASH.test(value)) found.add(value);
    } else if (typeof value === 'object' && value !== null)
      waiting.push(...Object.values(value).slice(0, VALUES_MAX));
  }
  return [...found];
}
