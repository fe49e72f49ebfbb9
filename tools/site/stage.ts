import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { VERSION } from '@skerry/kit';
import { readProgram, settingsOf } from '../manual/pages.ts';
import { ROOT } from '../source.ts';
import { renderApi } from './api-pages.ts';
import { renderCommands } from './command-pages.ts';
import { findSources, listContracts } from './contracts.ts';
import type { Page } from './markdown.ts';
import { addressOf, type Item, listItems, readGroups } from './navigation.ts';

/** Everything that VitePress reads: the pages of docs/, the README as the first one, the reference, and its settings. */

const CLIENT_README = 'packages/client/README.md';
const CLIENT = 'reference/client.md';
const REFERENCE = 'Reference';
/** Of interest to fewer: opened when one of its pages is read. */
const WORKING = 'Working on Skerry';

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** The README's links, from the root of the site. */
const fromRoot = (readme: string): string =>
  readme.replaceAll('](docs/', '](').replaceAll(`](${CLIENT_README})`, `](${CLIENT})`);

const titleIn = (text: string): string => /^# (.+)$/m.exec(text)?.[1] ?? '';

/** The pages that are written by hand, where the site has them. */
function listWritten(): Page[] {
  const pages = globSync('**/*.md', { cwd: join(ROOT, 'docs') })
    .sort()
    .map((path): Page => {
      const text = read(join('docs', path));
      return { path, title: titleIn(text), text };
    });
  const client = read(CLIENT_README);
  return [
    { path: 'index.md', title: 'Skerry', text: fromRoot(read('README.md')) },
    ...pages,
    { path: CLIENT, title: 'The client', text: client },
  ];
}

interface Generated {
  readonly pages: readonly Page[];
  readonly items: readonly Item[];
}

/** A first page with others below it. */
function itemsOf([first, ...others]: readonly Page[]): Item {
  const item = ({ title, path }: Page): Item => ({ text: title, link: addressOf(path) });
  const top = item(first!);
  return others.length === 0 ? top : { ...top, collapsed: true, items: others.map(item) };
}

async function generate(): Promise<Generated> {
  const sources = await findSources();
  const services = listContracts().map((contract) => renderApi(contract, sources));
  const commands = renderCommands(readProgram(), settingsOf);
  return {
    pages: [...services, commands].flat(),
    items: [
      itemsOf(commands),
      { text: 'The client', link: addressOf(CLIENT) },
      ...services.map((pages) => {
        const item = itemsOf(pages);
        return { ...item, text: `API: ${item.text.replace(/^Skerry /, '')}` };
      }),
    ],
  };
}

export interface Site {
  readonly pages: readonly Page[];
  /** By reader. */
  readonly sidebar: readonly Item[];
}

const FILE_LINK = /\[[\w-]+\.md\]\(([^)#]+\.md)(#[^)]*)?\)/g;

/** Links that are named by their file get the title of the page: on GitHub readers see files. */
const withTitles = ({ path, title, text }: Page, titles: ReadonlyMap<string, string>): Page => ({
  ...{ path, title },
  text: text.replaceAll(FILE_LINK, (link, target: string, anchor = '') => {
    const name = titles.get(posix.join(posix.dirname(path), target));
    return name === undefined ? link : `[${name}](${target}${anchor})`;
  }),
});

/** The whole site before it is built. */
export async function describeSite(): Promise<Site> {
  const files = listWritten();
  const titles = new Map(files.map(({ path, title }) => [path, title]));
  const written = files.map((page) => withTitles(page, titles));
  const { pages, items } = await generate();
  const groups = readGroups(read('README.md')).map((group) => ({
    text: group.title,
    collapsed: group.title === WORKING,
    items: listItems(group, (page) => titles.get(page) ?? page),
  }));
  return { pages: [...written, ...pages], sidebar: [...groups, { text: REFERENCE, collapsed: true, items }] };
}

const firstLink = ({ link, items = [] }: Item): string | undefined =>
  link ?? items.map(firstLink).find((one) => one !== undefined);

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** @param base where the site is served: `/` or `/docs/` */
export async function stageSite(to: string, base: string): Promise<Site> {
  const site = await describeSite();
  const { pages, sidebar } = site;
  for (const name of ['src', '.vitepress']) rmSync(join(to, name), { recursive: true, force: true });
  for (const { path, text } of pages) write(join(to, 'src', path), text);
  for (const path of globSync('*.json', { cwd: join(ROOT, 'docs') }))
    write(join(to, 'src/public', path), read(join('docs', path)));
  // A page that shows one has a copy of it made, under another name; one that links to it needs the file itself.
  for (const place of ['src/pictures', 'src/public/pictures'])
    cpSync(join(ROOT, 'docs/pictures'), join(to, place), { recursive: true });
  cpSync(join(ROOT, 'tools/site/vitepress'), join(to, '.vitepress'), { recursive: true });
  for (const name of ['package.json', 'package-lock.json'])
    write(join(to, name), read(join('tools/site', name)));
  // The repository's own is not looked for in the folders above.
  write(join(to, 'tsconfig.json'), '{}');
  const nav = sidebar.map((group) => ({ text: group.text, link: firstLink(group) }));
  write(join(to, '.vitepress/site.json'), JSON.stringify({ version: VERSION, base, nav, sidebar }));
  return site;
}
