import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { type Command, describeCommand } from '../manual/describe.ts';
import { readProgram } from '../manual/pages.ts';
import { literal } from './client-call.ts';
import { listContracts } from './contracts.ts';
import { findDeadLinks } from './links.ts';
import { addressOf, type Item, listItems, readGroups } from './navigation.ts';
import { describeSite, type Site } from './stage.ts';
import { anchorOf } from './vitepress/anchor.ts';

/** What the site is made of. VitePress itself runs in `npm run soak -- site`. */

const none = (problems: readonly string[]) => assert.deepEqual(problems, []);
const linksIn = (items: readonly Item[]): string[] =>
  items.flatMap(({ link, items: below = [] }) => [...(link === undefined ? [] : [link]), ...linksIn(below)]);

let site: Site;
before(async () => {
  site = await describeSite();
});
const textOf = (path: string) => site.pages.find((page) => page.path === path)?.text ?? '';

describe('the documentation site', () => {
  test('has every page in its navigation, once', () => {
    const expected = site.pages.map(({ path }) => addressOf(path)).filter((address) => address !== '/');
    assert.deepEqual(linksIn(site.sidebar).toSorted(), expected.toSorted());
    assert.deepEqual(
      site.sidebar.map(({ text }) => text),
      ['Using Skerry', 'Running nodes', 'Working on Skerry', 'Reference'],
    );
  });

  test('has every command in its reference, with its examples', () => {
    const listed = (command: Command): Command[] => [
      command,
      ...describeCommand(command).children.flatMap((child) => listed(child)),
    ];
    const commands = describeCommand(readProgram()).children.flatMap(listed).map(describeCommand);
    assert.ok(commands.length > 80, `${commands.length} commands`);
    none(
      commands.flatMap(({ path, examples }) => {
        const page = textOf(`reference/commands/${path[1]}.md`);
        const parts = [`# ${path.join(' ')} {#`, ...examples];
        return parts.filter((part) => !page.includes(part)).map((part) => `${path.join(' ')}: ${part}`);
      }),
    );
  });

  test('has every operation in its reference, with a call, what it answers, and its example', () => {
    for (const { name, api, examples } of listContracts()) {
      const pages = site.pages.filter(({ path }) => path.startsWith(`reference/${name}/`));
      const sections = pages.flatMap(({ text }) => text.split(/^## /m));
      const wrong = Object.keys(api).filter((id) => {
        const section = sections.find((one) => one.split('\n', 1)[0]!.endsWith(`{#${id.toLowerCase()}}`));
        if (!section?.includes(`_API.${id}, {`) || !section.includes('**Answer ')) return true;
        return section.includes('**Example**') !== id in examples;
      });
      none(wrong.map((id) => `${name}: ${id}`));
    }
  });

  test('has generated links that lead somewhere', () => {
    const anchorsOf = (text: string) =>
      new Set(
        [...text.matchAll(/^#+ (.*?)(?: \{#([\w-]+)\})?$/gm)].map(
          ([, heading, id]) => id ?? anchorOf(heading!),
        ),
      );
    const anchors = new Map(site.pages.map(({ path, text }) => [addressOf(path), anchorsOf(text)]));
    const generated = site.pages.filter(({ path }) => /^reference\/(?!client)/.test(path));
    const links = generated.flatMap(({ path, text }) =>
      [...text.matchAll(/\]\((\/[\w/-]*)?(?:#([\w-]+))?\)/g)].map(([link, to = addressOf(path), anchor]) => ({
        ...{ path, link, to, anchor },
      })),
    );
    assert.ok(links.length > 200, `${links.length} links`);
    none(
      links
        .filter(({ to, anchor }) => !(anchor === undefined ? anchors.has(to) : anchors.get(to)?.has(anchor)))
        .map(({ path, link }) => `${path}: ${link}`),
    );
  });
});

test('the navigation follows the tables of the README', () => {
  const docs = 'docs';
  const readme = `# A\n\n| [no](${docs}/no.md) |\n\n## Documentation\n\n**Using**\n\n| page | question |\n|---|---|
| [a.md](${docs}/a.md), [openapi.json](${docs}/openapi.json) | What? |\n\n**Running**\n\n| [x](${docs}/guides/x.md) | How? |\n`;
  const groups = readGroups(readme);
  assert.deepEqual(groups, [
    { title: 'Using', pages: ['a.md'] },
    { title: 'Running', pages: ['guides/x.md'] },
  ]);
  assert.deepEqual(
    listItems(groups[1]!, (page) => `title of ${page}`),
    [{ text: 'Guides', collapsed: false, items: [{ text: 'title of guides/x.md', link: '/guides/x' }] }],
  );
});

test('values stand in calls as TypeScript has them', () => {
  const rows: [unknown, string][] = [
    ["it's", "'it\\'s'"],
    ['a "quoted" word', `'a "quoted" word'`],
    [{ 'content.fields': 1, limit: [true, null] }, "{\n  'content.fields': 1,\n  limit: [true, null],\n}"],
    [[{}], '[{}]'],
  ];
  for (const [value, expected] of rows) assert.equal(literal(value), expected);
});

test('a link that leads nowhere is found, and one that leads somewhere is not', () => {
  const directory = mkdtempSync(join(tmpdir(), 'skerry-site-'));
  try {
    mkdirSync(join(directory, 'guides'));
    const page = (links: readonly string[]) =>
      `<h1 id="top">A</h1>${links.map((link) => `<a href="${link}">x</a>`).join('')}`;
    const right = ['/docs/guides/x.html#top', 'guides/x', '#top', 'https://example.org/y'];
    const wrong = ['/docs/y.html', 'guides/x#bottom', '/elsewhere'];
    writeFileSync(join(directory, 'index.html'), page([...right, ...wrong]));
    writeFileSync(join(directory, 'guides/x.html'), page(['../index.html', '/docs/']));
    assert.deepEqual(findDeadLinks(directory, '/docs/'), [
      'index.html: /docs/y.html is no page',
      'index.html: guides/x#bottom is no heading',
      'index.html: /elsewhere leaves /docs/',
    ]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
