import type { RouteOptions } from 'fastify';

/** A parameter, whose name ends where the router's do, or what means something else in an expression. */
const SPECIAL = /:[^/.-]+|[.+?^${}()|[\]\\*]/g;

/** `/a/:name.json/*` as an expression for paths: text without a slash for a name, anything for a star. */
export const patternOf = (url: string) =>
  new RegExp(
    `^${url.replace(SPECIAL, (one) => (one.startsWith(':') ? '[^/]+' : one === '*' ? '.*' : `\\${one}`))}$`,
  );

/** Which methods the paths of a server take: what a 405 has to say. */
export class Methods {
  readonly #byUrl = new Map<string, { readonly pattern: RegExp; readonly methods: Set<string> }>();

  note({ url, method }: Pick<RouteOptions, 'url' | 'method'>): void {
    const route = this.#byUrl.get(url) ?? { pattern: patternOf(url), methods: new Set() };
    this.#byUrl.set(url, route);
    // Preflights are answered for every path.
    for (const one of [method].flat()) if (one !== 'OPTIONS') route.methods.add(one);
  }

  /** Sorted; empty where there is no such path. */
  of(path: string): string[] {
    const found = [...this.#byUrl.values()].filter(({ pattern }) => pattern.test(path));
    return [...new Set(found.flatMap(({ methods }) => [...methods]))].sort();
  }
}
