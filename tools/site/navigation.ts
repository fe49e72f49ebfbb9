/** The navigation of the site: the tables of the README, by reader. Pure. */

export interface Group {
  /** `Running nodes` */
  readonly title: string;
  /** Below docs/, in their order: `guides/gateway.md`. */
  readonly pages: readonly string[];
}

const TITLE = /^\*\*(.+)\*\*$/;

/** Reads the tables below "Documentation". */
export function readGroups(readme: string): Group[] {
  const [, documentation = ''] = readme.split(/^## Documentation$/m);
  const groups: { title: string; pages: string[] }[] = [];
  for (const line of documentation.split('\n')) {
    const [, title] = TITLE.exec(line) ?? [];
    if (title !== undefined) groups.push({ title, pages: [] });
    else if (line.startsWith('|'))
      groups.at(-1)?.pages.push(...[...line.matchAll(/\]\(docs\/([^)#]+\.md)\)/g)].map(([, page]) => page!));
  }
  return groups;
}

export interface Item {
  readonly text: string;
  readonly link?: string;
  readonly items?: readonly Item[];
  readonly collapsed?: boolean;
}

/** Where a page is served: `guides/gateway.md` → `/guides/gateway`. */
export const addressOf = (page: string): string =>
  `/${page.replace(/(^|\/)index\.md$/, '$1').replace(/\.md$/, '')}`;

const isGuide = (page: string) => page.startsWith('guides/');

/** The entries of a group, guides below one of their own. */
export function listItems({ pages }: Group, titleOf: (page: string) => string): Item[] {
  const item = (page: string): Item => ({ text: titleOf(page), link: addressOf(page) });
  const guides = pages.filter(isGuide);
  return [
    ...(guides.length === 0 ? [] : [{ text: 'Guides', collapsed: false, items: guides.map(item) }]),
    ...pages.filter((page) => !isGuide(page)).map(item),
  ];
}
