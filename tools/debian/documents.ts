import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { ROOT } from '../source.ts';
import { TREE } from './layout.ts';
import type { DebianPackage } from './packages.ts';

/** What is below /usr/share/doc: Debian's own files of every package, and the guide. */

interface Document {
  readonly name: string;
  readonly content: string | Uint8Array;
}

const indent = (text: string) => text.trim().replace(/^/gm, ' ').replace(/^ $/gm, ' .');

/** Copyright-format 1.0, with the repository's licence where it has one. Pure. @param year of the release */
export const renderCopyright = (
  license: string | undefined,
  hasTree: boolean,
  year: number,
): string => `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Skerry

Files: *
Copyright: ${year} the authors of Skerry
License: Skerry
${indent(license ?? 'No licence has been given: all rights are reserved.')}
${
  hasTree
    ? `
Files: .${TREE}/node .${TREE}/node_modules/*
Copyright: their authors
License: of-each-package
 Node, and packages that others made. Each has its licence in its directory; the bill of materials of this
 package lists all of them.
`
    : ''
}`;

/** deb-changelog(5): what has changed is in the history of the repository. Pure. @param epoch seconds since 1970 */
export const renderChangelog = (
  name: string,
  version: string,
  epoch: number,
): string => `${name} (${version}) stable; urgency=medium

  * Release ${version}.

 -- Skerry <skerry@localhost>  ${new Date(epoch * 1000).toUTCString().replace('GMT', '+0000')}
`;

export function listDocuments({ name, hasTree }: DebianPackage, version: string, epoch: number): Document[] {
  const license = join(ROOT, 'LICENSE');
  const date = new Date(epoch * 1000);
  const text = existsSync(license) ? readFileSync(license, 'utf8') : undefined;
  const pages = hasTree ? globSync('docs/*.md', { cwd: ROOT }).sort() : [];
  return [
    { name: 'copyright', content: renderCopyright(text, hasTree, date.getUTCFullYear()) },
    { name: 'changelog.gz', content: gzipSync(renderChangelog(name, version, epoch), { level: 9 }) },
    ...pages.map((page) => ({ name: page.replace('docs/', ''), content: readFileSync(join(ROOT, page)) })),
  ];
}
