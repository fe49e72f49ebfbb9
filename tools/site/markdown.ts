/** Text as it stands in markdown that a site generator reads. Pure. */

export interface Page {
  /** Below the root of the site: `reference/core/index.md`. */
  readonly path: string;
  /** In the navigation. */
  readonly title: string;
  readonly text: string;
}

/** Sentences, whose `code` stays: no tag, no template. */
export const prose = (text: string): string =>
  text
    .split(/(`[^`]*`)/)
    .map((part, index) =>
      index % 2 === 1
        ? part
        : part.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('{{', '{&#123;'),
    )
    .join('');

/** In a cell of a table. */
export const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');

/** With ticks around it that the text does not have. */
export function code(text: string): string {
  const ticks = text.includes('`') ? '``' : '`';
  const pad = text.startsWith('`') || text.endsWith('`') ? ' ' : '';
  return `${ticks}${pad}${text}${pad}${ticks}`;
}

export function fence(language: string, text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const ticks = '`'.repeat(longest + 1);
  return `${ticks}${language}\n${text}\n${ticks}`;
}
