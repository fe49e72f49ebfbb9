/** Where the reader is: it stands behind the `#`, so that any web server can serve the page and any place can be linked. */
export interface Route {
  /** `nodes`, `ID`; empty is the overview. */
  readonly parts: readonly string[];
  readonly query: Readonly<Record<string, string>>;
}

const decode = (part: string) => {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
};

export function parseRoute(hash: string): Route {
  const [path = '', search = ''] = hash.replace(/^#/, '').split('?', 2);
  return {
    parts: path.split('/').filter(Boolean).map(decode),
    query: Object.fromEntries(new URLSearchParams(search)),
  };
}

/** The address of a place. What is undefined or empty is left out of the query. */
export function linkTo(
  parts: readonly string[],
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const asked = given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
  return `#/${parts.map(encodeURIComponent).join('/')}${asked}`;
}

/** The same place within the page, whatever somebody put into a link; undefined where it is none. */
export function placeIn(hash: string | undefined): string | undefined {
  if (!hash?.startsWith('#/')) return undefined;
  const { parts, query } = parseRoute(hash);
  return linkTo(parts, query);
}
