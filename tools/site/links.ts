import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Whether every link of a built site leads to a page, a file or a heading of it. */

const HREF = /\s(?:href|src)="([^"]+)"/g;
const ID = /\sid="([^"]+)"/g;
const ELSEWHERE = /^(?:[a-z]+:|\/\/|data:)/;

const listAll = (pattern: RegExp, text: string) => [...text.matchAll(pattern)].map(([, one]) => one!);
const decode = (text: string) => decodeURIComponent(text.replaceAll('&amp;', '&'));

/** The file that a path leads to: pages may be named without their ending. */
function fileOf(directory: string, path: string): string | undefined {
  const candidates = path.endsWith('/')
    ? [`${path}index.html`]
    : [path, `${path}.html`, `${path}/index.html`];
  return candidates.find((one) => /\.\w+$/.test(one) && existsSync(join(directory, one)));
}

/** @param base where the site is served @returns a line for each link that leads nowhere */
export function findDeadLinks(directory: string, base: string): string[] {
  const pages = globSync('**/*.html', { cwd: directory }).sort();
  const texts = new Map(pages.map((page) => [page, readFileSync(join(directory, page), 'utf8')]));
  const ids = new Map([...texts].map(([page, text]) => [page, new Set(listAll(ID, text))]));
  const problemOf = (page: string, link: string): string | undefined => {
    const address = new URL(link, `http://site${base}${page}`);
    if (!address.pathname.startsWith(base)) return `${page}: ${link} leaves ${base}`;
    const file = fileOf(directory, decode(address.pathname.slice(base.length)) || 'index.html');
    if (file === undefined) return `${page}: ${link} is no page`;
    const anchor = decode(address.hash.slice(1));
    return anchor === '' || !ids.has(file) || ids.get(file)!.has(anchor)
      ? undefined
      : `${page}: ${link} is no heading`;
  };
  return [...texts].flatMap(([page, text]) =>
    [...new Set(listAll(HREF, text))]
      .filter((link) => !ELSEWHERE.test(link))
      .flatMap((link) => problemOf(page, link) ?? []),
  );
}
