import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, test } from 'node:test';
import { anchorOf } from './site/vitepress/anchor.ts';
import { listSources, ROOT } from './source.ts';

/** Links between pages, and from comments to headings, lead somewhere. */

/** Of the operating system, not ours. */
const OF_SYSTEM: ReadonlySet<string> = new Set(['ECONNRESET', 'ENOTDIR', 'ENOTFOUND', 'ETIMEDOUT']);

const PAGES = ['README.md', ...globSync('docs/**/*.md', { cwd: ROOT }).sort()];
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** Lines of a page outside of fenced blocks. */
function proseOf(page: string): string[] {
  let isFenced = false;
  return page.split('\n').filter((line) => {
    const isFence = line.startsWith('```');
    if (isFence) isFenced = !isFenced;
    return !isFence && !isFenced;
  });
}

const headingsOf = (page: string): string[] =>
  proseOf(page).flatMap((line) => /^#{1,6} (.+)$/.exec(line)?.[1] ?? []);

const withoutCode = (line: string) => line.replace(/`[^`]*`/g, '');
const linksOf = (page: string): string[] =>
  proseOf(page).flatMap((line) => [...withoutCode(line).matchAll(/\]\(([^)\s]+)\)/g)].map(([, to]) => to!));

/** @returns why a link of a page leads nowhere */
function problemOf(from: string, link: string): string | undefined {
  if (/^https?:/.test(link)) return undefined;
  const [path, anchor] = link.split('#') as [string, string | undefined];
  const target = path === '' ? from : relative(ROOT, join(ROOT, dirname(from), path));
  if (!existsSync(join(ROOT, target))) return `${from}: ${link} is no file`;
  if (anchor === undefined || headingsOf(read(target)).map(anchorOf).includes(anchor)) return undefined;
  return `${from}: ${link} is no heading`;
}

describe('documentation', () => {
  test('links lead to pages and headings that exist', () => {
    const links = PAGES.flatMap((page) => linksOf(read(page)).map((link) => ({ page, link })));
    assert.ok(links.length > 100, `${links.length} links`);
    assert.deepEqual(
      links.flatMap(({ page, link }) => problemOf(page, link) ?? []),
      [],
    );
  });

  test('every page is linked from the README', () => {
    const listed = linksOf(read('README.md'));
    assert.deepEqual(
      PAGES.filter((page) => page !== 'README.md' && !listed.includes(page)),
      [],
    );
  });

  test('files that pages name exist', () => {
    const files = globSync(
      ['{apps,bench,contracts,devnet,packages,services,tools}/**/*.{ts,c,h,sol,py,mjs}'],
      {
        cwd: ROOT,
        exclude: ['**/node_modules/**'],
      },
    );
    const isThere = (name: string) => files.some((file) => file === name || file.endsWith(`/${name}`));
    const namesOf = (page: string) =>
      [...read(page).matchAll(/`([\w./-]+\.(?:ts|c|h|sol|py|mjs))`/g)].map(([, name]) => name!);
    assert.deepEqual(
      PAGES.flatMap((page) =>
        namesOf(page)
          .filter((name) => !isThere(name))
          .map((name) => `${page}: ${name}`),
      ),
      [],
    );
  });

  test('a code that sources give as a reason is an error, or stands in the pages', () => {
    const pages = PAGES.map(read).join('\n');
    const given = listSources()
      .filter(({ path }) => /^(services|packages)\//.test(path) && !/test|example/.test(path))
      .flatMap(({ path, text }) =>
        [...text.matchAll(/\bcode: '([A-Z_]+)'/g)].map(([, code]) => ({ path, code: code! })),
      );
    assert.ok(given.length > 20, `${given.length} codes`);
    assert.deepEqual(
      given.filter(({ code }) => !OF_SYSTEM.has(code) && !new RegExp(`\\b${code}\\b`).test(pages)),
      [],
    );
  });

  test('no page has two headings with one anchor', () => {
    const twice = (page: string) => {
      const anchors = headingsOf(read(page)).map(anchorOf);
      return anchors.filter((anchor, index) => anchors.indexOf(anchor) < index);
    };
    assert.deepEqual(
      PAGES.flatMap((page) => twice(page).map((anchor) => `${page}#${anchor}`)),
      [],
    );
  });

  test('a heading that a comment cites exists', () => {
    const cited = listSources().flatMap(({ path, text }) =>
      [...text.matchAll(/(docs\/[a-z/-]+\.md), "([^"]+)"/g)].map(([, page, heading]) => ({
        path,
        page: page!,
        heading: heading!,
      })),
    );
    assert.ok(cited.length > 0);
    assert.deepEqual(
      cited
        .filter(({ page, heading }) => !headingsOf(read(page)).includes(heading))
        .map(({ path, page, heading }) => `${path}: ${page} has no heading "${heading}"`),
      [],
    );
  });
});
