import { readFileSync } from 'node:fs';
import { anchorOf } from './anchor.ts';

/** What VitePress reads; tools/site/stage.ts puts it beside the pages, with site.json. */

const { version, base, nav, sidebar } = JSON.parse(
  readFileSync(new URL('site.json', import.meta.url), 'utf8'),
);

export default {
  lang: 'en',
  title: 'Skerry',
  description: 'A decentralised cloud that people run themselves',
  base,
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  srcDir: './src',
  cleanUrls: false,
  // A page has no time of its own: the same commit gives the same bytes.
  lastUpdated: false,
  // The index of the search has pages in the order in which they come.
  buildConcurrency: 1,
  markdown: {
    // An address in a sentence is an example.
    linkify: false,
    anchor: { slugify: anchorOf },
    theme: { light: 'github-light', dark: 'github-dark' },
  },
  themeConfig: {
    nav,
    sidebar,
    outline: { level: [2, 3] },
    search: { provider: 'local' },
    footer: { message: `Skerry ${version}` },
    docFooter: { prev: 'Previous', next: 'Next' },
  },
};
